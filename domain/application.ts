import type { ApplicationState } from './application-states';

/** What an application is for. Money in pence. */
export interface ApplicationTerms {
  readonly loanPence: number;
  readonly depositPence: number;
  /** The product chosen on the link; null when the link named none. */
  readonly creditProduct: string | null;
}

/** A change of an application's state, as its notification tells it. No personal data. */
export interface ApplicationChange extends ApplicationTerms {
  readonly eventId: string;
  readonly environment: 'sandbox' | 'live';
  /** When the change was recorded. */
  readonly createdAt: Date;
  /** 1, 2, 3 … for each application. */
  readonly sequence: number;
  readonly applicationId: string;
  readonly quoteId: string;
  readonly merchantReference: string | null;
  readonly merchantId: string;
  readonly lender: string;
  readonly lenderReference: string;
  readonly status: ApplicationState;
  readonly previousStatus: ApplicationState | null;
  /** When the lender says it happened. */
  readonly occurredAt: Date;
}

/** Writes the body that a partner is sent, byte for byte. */
export type WriteChange = (change: ApplicationChange) => string;
