import type { Tenant } from '../domain/tenant';
import type { DeliveryOutcome } from '../domain/delivery-outcome';

/** So many attempts in a row must have been fast. */
const IN_A_ROW = 10;
/** After a slow success so many are enough. */
const AFTER_SLOW = 3;
/** A fast attempt succeeds within this. */
const FAST_MS = 500;

/** What an attempt came to, as far as it says how fast an endpoint is. */
export interface AttemptPace {
  readonly outcome: DeliveryOutcome['kind'] | 'unknown';
  readonly durationMs: number | null;
}

export interface EndpointHistory {
  readonly endpointId: string;
  /** Finished attempts of any worker, newest first. */
  readonly attempts: readonly AttemptPace[];
}

interface EndpointSpeedDeps {
  /** Reads the present endpoint and its last attempts; null when there is none. */
  readonly recall: (of: Tenant) => Promise<EndpointHistory | null>;
  readonly onError: (error: unknown) => void;
}

/** Which endpoints answer fast, as this process sees it: from its own attempts, and at first from the database. */
export interface EndpointSpeed {
  /**
   * The id of the endpoint when its last ten attempts succeeded in under 500 ms each; else, or not yet known, null. After a slow
   * success the next three are enough: while this machine is overloaded every endpoint looks slow, and ten regular attempts to
   * each of them, at two or three times the cost, would keep it so.
   */
  readonly fast: (of: Tenant) => string | null;
  /** An attempt of this process has ended. Another endpoint than before: it has to prove itself anew. */
  readonly observe: (of: Tenant & { readonly endpointId: string }, attempt: AttemptPace) => void;
}

interface Known {
  endpointId: string | null;
  inARow: number;
  /** Grows when what was recalled no longer counts. */
  setbacks: number;
}

export function createEndpointSpeed({ recall, onError }: EndpointSpeedDeps): EndpointSpeed {
  const endpoints = new Map<string, Known>();
  const keyOf = ({ partnerId, environment }: Tenant) => `${partnerId}/${environment}`;

  function meet(of: Tenant): Known {
    const key = keyOf(of);
    const present = endpoints.get(key);
    if (present !== undefined) return present;
    const known: Known = { endpointId: null, inARow: 0, setbacks: 0 };
    endpoints.set(key, known);
    recall(of)
      .then((history) => {
        if (history === null || known.setbacks > 0) return;
        if (known.endpointId !== null && known.endpointId !== history.endpointId) return;
        known.endpointId = history.endpointId;
        known.inARow = Math.max(known.inARow, leading(history.attempts));
      })
      .catch((error: unknown) => {
        endpoints.delete(key);
        onError(error);
      });
    return known;
  }
  return {
    fast: (of) => {
      const { endpointId, inARow } = meet(of);
      return inARow >= IN_A_ROW ? endpointId : null;
    },
    observe: ({ endpointId, ...of }, attempt) => {
      const known = meet(of);
      if (known.endpointId !== null && known.endpointId !== endpointId) {
        known.inARow = 0;
        known.setbacks += 1;
      }
      known.endpointId = endpointId;
      if (isFast(attempt)) known.inARow += 1;
      else {
        known.inARow = attempt.outcome === 'delivered' ? Math.min(known.inARow, IN_A_ROW - AFTER_SLOW) : 0;
        known.setbacks += 1;
      }
    },
  };
}

function isFast({ outcome, durationMs }: AttemptPace): boolean {
  return outcome === 'delivered' && durationMs !== null && durationMs < FAST_MS;
}

/** How many of the newest were fast, until the first that was not. */
function leading(attempts: readonly AttemptPace[]): number {
  const slow = attempts.findIndex((attempt) => !isFast(attempt));
  return slow === -1 ? attempts.length : slow;
}
