/** The cause, for callers that answer each in their own way. */
type RefusalDetail =
  | 'no_endpoint'
  | 'under_way'
  | 'test'
  | 'payload_removed'
  | 'disabled'
  | 'too_long_ago'
  | 'empty_span'
  | 'recovery_under_way';

/** A change that cannot be made as asked. Thrown, so that the transaction around it rolls back. */
export class Refused extends Error {
  override readonly name = 'Refused';

  constructor(
    /**
     * `not_found`: the thing does not exist; `conflict`: its state forbids the change; `invalid`: the
     * request is wrong.
     */
    readonly kind: 'not_found' | 'conflict' | 'invalid',
    message: string,
    readonly detail?: RefusalDetail,
    /** The id of what stands in the way. */
    readonly otherId?: string,
  ) {
    super(message);
  }
}

/** Whether Postgres refused a statement for the values of a row: data that do not fit, or a CHECK. */
export const isDataFault = (error: unknown): boolean =>
  /^(22\w{3}|23514)$/.test(String((error as { readonly code?: unknown } | null)?.code));
