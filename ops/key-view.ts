import type { ApiKeySummary } from '../db/keys/api-keys';
import type { Issued, KeySummary } from '../db/keys/key';
import { snakeCased } from './output';

const SHOWN_ONCE = 'This key is shown once and is not stored: hand it over now.';

/** The only answer that holds a key. */
export function issuedAnswer<S extends KeySummary>({ key, summary }: Issued<S>, said: string) {
  return {
    json: { ...snakeCased(summary), key, notice: SHOWN_ONCE },
    text: `${said}\n\n  ${key}\n\n${SHOWN_ONCE}`,
  };
}

/** What a caller with this key meets. */
export function keyStatus({ state, expired, partnerState }: ApiKeySummary): string {
  if (state === 'active' && expired) return 'expired';
  return state === 'active' && partnerState === 'inactive' ? 'active (partner inactive)' : state;
}
