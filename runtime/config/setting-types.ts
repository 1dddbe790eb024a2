import { z } from 'zod';

/** Forms that several settings share. */

export const port = z.coerce.number().int().min(1).max(65_535);

/** 1 ms to ten minutes. */
export const milliseconds = z.coerce.number().int().min(1).max(600_000);

/** Comma-separated; blanks do not count. */
export const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);
