import type { ApplicationState } from '../../domain/application-states';

/** The life of one application, as its lender tells it. */
export interface Story {
  readonly title: string;
  readonly lender: 'lender_a' | 'lender_b';
  /** Of the lender's own form, another one each time. */
  readonly newReference: (seed: number) => string;
  readonly statuses: readonly ApplicationState[];
}

/** Eight alphanumerics. */
const eight = (seed: number) => seed.toString(36).toUpperCase().padStart(8, 'A').slice(-8);
/** Seven digits. */
const seven = (seed: number) => String(seed % 10_000_000).padStart(7, '0');

/** Both lenders, a life that ends well, one that is refunded, and one that is declined. */
export const STORIES: readonly Story[] = [
  {
    title: 'referred, then accepted, and paid for',
    lender: 'lender_a',
    newReference: eight,
    statuses: [
      'submitted',
      'referred',
      'accepted',
      'deposit_paid',
      'signed',
      'ready',
      'activated',
      'paid_out',
      'completed',
    ],
  },
  {
    title: 'accepted at once, then sent back by the customer',
    lender: 'lender_b',
    newReference: seven,
    // This lender leaves steps out.
    statuses: ['submitted', 'accepted', 'signed', 'activated', 'partially_refunded', 'refunded'],
  },
  {
    title: 'declined',
    lender: 'lender_b',
    newReference: (seed) => seven(seed + 1),
    statuses: ['submitted', 'referred', 'declined'],
  },
];

/** A few events, for a partner who misses some. */
export const SHORT_STORY: Story = {
  title: 'accepted and signed',
  lender: 'lender_a',
  newReference: eight,
  statuses: ['submitted', 'accepted', 'signed'],
};
