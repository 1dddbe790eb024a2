import { z } from 'zod';

/** The answer to a call that succeeded. @param id its name in the document. @param data the fields of its `data`. */
export const answerSchema = <Data extends z.ZodRawShape>(id: string, data: Data) =>
  z.object({ success: z.literal(true), data: z.object(data) }).meta({ id });
