import { z } from 'zod';

/** `P` and six digits (spec §2.1). */
export const partnerIdSchema = z
  .string()
  .regex(/^P\d{6}$/, 'partner_id must be the letter P followed by six digits.')
  .meta({ description: 'The partner that owns the API key.', examples: ['P100001'] });

/** `M` and six or seven digits, or the alternative form `XX-XXXX-XXXX-XXXX` (spec §2.1). */
export const merchantIdSchema = z
  .string()
  .regex(
    /^(M\d{6,7}|[A-Z]{2}(-[A-Z0-9]{4}){3})$/,
    'merchant_id must be the letter M followed by six or seven digits, or two letters and three groups of four characters joined by hyphens.',
  )
  .meta({
    description: 'The merchant, as supplied by the service.',
    examples: ['M100001', 'AB-1C2D-3E4F-5G6H'],
  });
