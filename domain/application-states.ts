/** States of a credit application, in the order in which they are usually reached (design §5). */
export const APPLICATION_STATES = [
  'created',
  'submitted',
  'referred',
  'accepted',
  'action_required',
  'deposit_paid',
  'signed',
  'ready',
  'activated',
  'paid_out',
  'completed',
  'declined',
  'cancelled',
  'expired',
  'partially_refunded',
  'refunded',
] as const;

export type ApplicationState = (typeof APPLICATION_STATES)[number];
