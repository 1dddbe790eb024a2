import type { ApiKeySummary } from '../db/keys/api-keys';
import type { KeySummary } from '../db/keys/key-changes';
import type { ServiceKeySummary } from '../db/keys/service-keys';
import type { Answer } from './call';

const SHOWN_ONCE = 'This key is shown once and is not stored: hand it over now.';

/** The only answer that holds a key; `view` is the rest of what is known of it. */
export function issuedAnswer(key: string, view: object, said: string): Answer {
  return {
    json: { ...view, key, notice: SHOWN_ONCE },
    text: `${said}\n\n  ${key}\n\n${SHOWN_ONCE}`,
  };
}

/** What a caller with this key meets. */
export function keyStatus({ state, expired, partnerState }: ApiKeySummary): string {
  if (state === 'active' && expired) return 'expired';
  return state === 'active' && partnerState === 'inactive' ? 'active (partner inactive)' : state;
}

const common = (key: KeySummary) => ({
  last_four: key.lastFour,
  state: key.state,
  expired: key.expired,
  expires_at: key.expiresAt,
  created_at: key.createdAt,
  revoked_at: key.revokedAt,
  replaced_by: key.replacedBy,
});

/** A partner's key without the key itself. */
export const keyView = (key: ApiKeySummary) => ({
  key_id: key.keyId,
  partner_id: key.partnerId,
  environment: key.environment,
  ...common(key),
  partner_state: key.partnerState,
});

/** A service key without the key itself. */
export const serviceKeyView = (key: ServiceKeySummary) => ({
  key_id: key.keyId,
  name: key.name,
  lender: key.lender,
  environment: key.environment,
  ...common(key),
});
