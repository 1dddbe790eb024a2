import { z } from 'zod';

/** Settings of the command line. */
export const opsSettings = {
  OPS_ACTOR: z
    .string()
    .regex(
      /^(?=.{1,120}$)[^\p{C}\p{Z}]+(?: [^\p{C}\p{Z}]+)*$/u,
      'must be 1 to 120 visible characters: who you are, such as jane.doe',
    )
    .optional()
    .describe(
      'Who changes something through `ops`, for the change log. Without it the login name; in production a shared account (`node`, `root`, …) is refused.',
    ),
} as const;
