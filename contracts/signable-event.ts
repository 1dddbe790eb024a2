/**
 * What workers sign. Two readers of JSON may read one text differently: of a field that is there twice Go takes the last and others the
 * first, and Go's names have no case, so that `"DATA"` replaces `"data"`. So a body is signed only if it is, byte for byte, what we would
 * have written: exactly these fields, in this order, each in its one form.
 */

/** Whether a value has the form in which we write the field. */
type Form = (value: unknown) => boolean;

interface EventFields {
  /** In the order in which they are written; `data` is the last. */
  readonly event: Readonly<Record<string, Form>>;
  readonly data: Readonly<Record<string, Form>>;
  /**
   * Fields that were added to `data` later, in the order in which they were added. A body has the first few of them: older ones are
   * stored, and sent again, without.
   */
  readonly added: Readonly<Record<string, Form>>;
}

/** U+0000 ends a text for some readers, and half of a surrogate pair is read as different characters. */
const text: Form = (value) => typeof value === 'string' && !/[\0\p{Cs}]/u.test(value);
const textOrNull: Form = (value) => value === null || text(value);
const word: Form = (value) => typeof value === 'string' && /^[a-z_]{1,40}$/.test(value);
const wordOrNull: Form = (value) => value === null || word(value);
const whole: Form = (value) => Number.isSafeInteger(value);
/** Pounds, as `formatPence` writes them. */
const money: Form = (value) => typeof value === 'string' && /^(0|[1-9]\d*)\.\d{2}$/.test(value);
/** UTC with milliseconds, as `toISOString` writes it. */
const timestamp: Form = (value) => {
  const at = new Date(typeof value === 'string' ? value : Number.NaN);
  return !Number.isNaN(at.getTime()) && at.toISOString() === value;
};
const eventType: Form = (value) =>
  typeof value === 'string' && /^credit_application\.[a-z_]{1,40}$/.test(value);

/**
 * By `api_version`. States are not listed, so that a worker signs those of a later release. Nothing is ever removed: bodies are sent again
 * for as long as they are stored. A field is added here one release before an API writes it.
 */
export const EVENT_FIELDS: Readonly<Record<string, EventFields>> = {
  v1: {
    event: {
      event_id: text,
      event_type: eventType,
      api_version: (value) => value === 'v1',
      environment: word,
      created_at: timestamp,
      sequence: whole,
    },
    data: {
      credit_application_id: text,
      service_quote_id: text,
      merchant_reference: textOrNull,
      merchant_id: text,
      lender: text,
      lender_reference: text,
      status: word,
      previous_status: wordOrNull,
      loan_amount: money,
      customer_deposit: money,
      occurred_at: timestamp,
      credit_product: textOrNull,
    },
    added: {},
  },
};

/** The fields of a body that the worker compares with its row. */
export interface SignableEvent {
  readonly event_id: string;
  readonly event_type: string;
  readonly environment: string;
  readonly sequence: number;
  readonly data: {
    readonly credit_application_id: string;
    readonly merchant_reference: string | null;
    readonly status: string;
  };
}

/**
 * Reads a stored body.
 * @param known the fields of each `api_version`
 * @returns null when the text is not one that we would have written
 */
export function readSignable(body: string, known = EVENT_FIELDS): SignableEvent | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return null;
  }
  if (!isObject(parsed) || !isObject(parsed['data'])) return null;
  const version = String(parsed['api_version']);
  const fields = Object.hasOwn(known, version) ? known[version] : undefined;
  if (fields === undefined) return null;
  const event = picked(parsed, fields.event);
  const data = picked(parsed['data'], fields.data);
  if (event === null || data === null) return null;
  for (const [name, form] of Object.entries(fields.added)) {
    if (!Object.hasOwn(parsed['data'], name)) break;
    const value = parsed['data'][name];
    if (!form(value)) return null;
    data[name] = value;
  }
  const whole = { ...event, data };
  // Whatever else the text contains, twice, in another order or spelling, is not in this one.
  return JSON.stringify(whole) === body ? (whole as unknown as SignableEvent) : null;
}

function picked(from: Record<string, unknown>, forms: EventFields['event']): Record<string, unknown> | null {
  const found: Record<string, unknown> = {};
  for (const [name, form] of Object.entries(forms)) {
    if (!Object.hasOwn(from, name) || !form(from[name])) return null;
    found[name] = from[name];
  }
  return found;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
