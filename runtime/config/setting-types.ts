import { z } from 'zod';

/** Forms that several settings share. */

export const whole = (lowest: number, highest: number) => z.coerce.number().int().min(lowest).max(highest);

export const port = whole(1, 65_535);

/** Comma-separated; blanks do not count. */
export const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);

const ADDRESSES = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]);

/** An IP address, or a CIDR that is not everything. */
export const addressOrRange = z.string().superRefine((text, context) => {
  if (ADDRESSES.safeParse(text).success && !text.endsWith('/0')) return;
  context.addIssue({ code: 'custom', message: `not an address or a CIDR: ${text}` });
});
