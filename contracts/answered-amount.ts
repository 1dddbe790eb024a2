import { z } from 'zod';

/** Every amount that we send: pounds, always with two decimals. */
export const ANSWERED_AMOUNT = '^\\d+\\.\\d{2}$';

export function answeredAmount(example: string, description?: string) {
  return z
    .string()
    .meta({ ...(description && { description }), pattern: ANSWERED_AMOUNT, examples: [example] });
}
