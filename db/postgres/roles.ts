/**
 * The roles of the processes with all of their rights, in the form of `GRANT`. migrate grants exactly
 * these (rights.ts). A right that a release no longer needs stays for one more release
 * (docs/operations/upgrade.md).
 */
export const PROCESSES = ['api', 'worker', 'ops'] as const;
export type Process = (typeof PROCESSES)[number];

export const roleOf = (process: Process) => `quotes_${process}` as const;

type Rights = Readonly<Partial<Record<Process, string>>>;

const APPLICATION_MOVES = 'update (state, state_occurred_at, sequence, updated_at)';
const SENT_AGAIN = 'end_state, end_reason, ended_at, sent_again_at, recovery_id';
const RELEASED =
  'state, generation, priority, due_at, held_at, hold_reason, started_at, first_attempt_at, checked_at, step';
const RECOVERY_MOVES =
  'state, runner, per_second, found, sent, skipped, last_application, last_sequence, last_notification, updated_at, ended_at';
const NEW_RECOVERY =
  'insert (recovery_id, partner_id, environment, since, until, key_id, per_second, found, runner)';
const KEY_CHANGES = 'update (state, expires_at, revoked_at, replaced_by)';
const NEW_NOTIFICATION =
  'insert (notification_id, event_id, event_type, partner_id, environment, application_id, sequence, merchant_reference, body, ' +
  'created_at, request_id, trace_parent)';
const NEW_DELIVERY =
  'insert (notification_id, partner_id, environment, application_id, sequence, test, delivered, priority, generation, attempts, ' +
  'state, hold_reason, held_at, reserved_month)';
/** Postgres sets number, moment and login. */
const NEW_CHANGE = 'insert (actor, action, subject, details)';
const NEW_EVENT = 'insert (kind, partner_id, environment, endpoint_id, details)';

/** Partitions have no rights of their own, but for the default ones. Statements go through the parent. */
export const TABLE_RIGHTS: Readonly<Record<string, Rights>> = {
  partners: {
    api: 'select',
    worker: 'select (partner_id, recovery)',
    ops: 'select, insert, update (state, recovery)',
  },
  api_keys: { api: 'select', ops: `select, insert, ${KEY_CHANGES}` },
  key_uses: { api: 'select, insert, update (used_at)', ops: 'select' },
  service_keys: { api: 'select', ops: `select, insert, ${KEY_CHANGES}` },
  lenders: { api: 'select', worker: 'select', ops: 'select, insert, update (name, reference_format)' },
  merchants: {
    api: 'select',
    ops:
      'select, insert, update (trading_name, fca_authorised, show_products, summary_style, deposit_floor_basis_points, ' +
      'deposit_floor_fixed_pence, partner_access, updated_at)',
  },
  merchant_partners: { api: 'select', ops: 'select, insert, delete' },
  products: { api: 'select', ops: 'select, insert, update (active, current_version, display_order)' },
  product_versions: { api: 'select', ops: 'select, insert' },

  quotes: { api: 'select, insert', ops: 'select' },
  quotes_default: { ops: 'select' },

  // The API records lender events. A worker applies those whose wait is over.
  credit_applications: {
    api: `select, insert, ${APPLICATION_MOVES}`,
    worker: `select, ${APPLICATION_MOVES}`,
    ops: 'select',
  },
  lender_events: {
    api:
      'select, insert (application_id, lender, environment, lender_event_id, status, occurred_at, verdict, state_after, waits_until, ' +
      'service_key_id, request_id), update (state_after, previous_state, sequence, applied_at, waits_until)',
    worker: 'select, update (previous_state, sequence, applied_at, waits_until)',
    ops: 'select',
  },

  // The API stores notifications, workers deliver them, and operators resend and cancel them.
  notifications: {
    api: `select, ${NEW_NOTIFICATION}, update (${SENT_AGAIN})`,
    worker: `select, ${NEW_NOTIFICATION}, update (${SENT_AGAIN}, generation, attempts, failed_month, delivered_at)`,
    ops: `select, ${NEW_NOTIFICATION}, update (${SENT_AGAIN}, generation, attempts, failed_month, delivered_at)`,
  },
  // Storing or resending a notification inserts a row. Ending one deletes it.
  deliveries: {
    api: `select, ${NEW_DELIVERY}, update (${RELEASED})`,
    worker: `select, ${NEW_DELIVERY}, update, delete`,
    ops: `select, ${NEW_DELIVERY}, delete, update (${RELEASED}, taken_at, next_attempt_at, paused_at, paused_by, hurried_at, ordered_at, reserved_month)`,
  },
  // Operators pause deliveries, workers check that, and the API shows no next attempt then.
  delivery_pauses: {
    api: 'select (partner_id, environment, resumed_at)',
    worker: 'select',
    ops: 'select, insert (partner_id, environment, paused_by), update (resumed_at, resumed_by)',
  },
  delivery_intervals: { worker: 'select', ops: 'select' },
  notifications_now: { api: 'select', worker: 'select', ops: 'select' },
  notifications_default: { ops: 'select' },
  delivery_attempts: {
    api:
      'select (notification_id, attempt_number, generation, endpoint_id, started_at, finished_at, outcome, failure, ' +
      'http_status, duration_ms)',
    worker:
      'select, insert, delete, update (finished_at, outcome, failure, http_status, duration_ms, retry_after_ms, address, answer)',
    ops: 'select, update (finished_at, outcome)',
  },
  delivery_attempts_default: { ops: 'select' },
  monthly_counts: {
    api: 'select, insert (partner_id, environment, month, event_type), update (reserved)',
    worker: 'select, insert, update (delivered, failed, reserved)',
    ops: 'select, insert (partner_id, environment, month, event_type), update (reserved)',
  },
  recoveries: {
    api: `select, ${NEW_RECOVERY}`,
    worker: `select, update (${RECOVERY_MOVES})`,
    ops: `select, insert, update (${RECOVERY_MOVES})`,
  },

  // The API shows a partner its endpoint, and cannot read what signs for it.
  webhook_endpoints: {
    api: 'select (partner_id, environment, url, state, disabled_reason, last_success_at, failing_since, updated_at)',
    worker:
      'select, update (state, disabled_reason, last_success_at, failing_since, failures_since_success, warned_hours, updated_at, surplus_at)',
    ops: 'select, insert, update (state, disabled_reason, failing_since, failures_since_success, warned_hours, updated_at)',
  },
  webhook_secrets: { worker: 'select', ops: 'select, insert, update (key_id, ciphertext, expires_at)' },
  webhook_key_pairs: {
    api: 'select (key_pair_id, partner_id, environment, public_key, created_at, expires_at)',
    worker: 'select',
    ops: 'select, insert, update (key_id, ciphertext, expires_at)',
  },

  // Each process writes that it runs. The backup script logs in as the superuser.
  processes: {
    api:
      'select (process_id, temporal_at, trouble), insert (process_id, kind, host, build, temporal_at, trouble), ' +
      'update (seen_at, temporal_at, stopped_at, trouble)',
    worker:
      'select, insert (process_id, kind, host, build, temporal_at, cut_off_since, seat, trouble), ' +
      'update (seen_at, temporal_at, cut_off_since, seat, stopped_at, trouble), delete',
    ops: 'select',
  },
  outages: { worker: 'select, insert (kind, began_at), update (ended_at)', ops: 'select' },
  // One worker counts what all of them and `ops status` show.
  figures: { worker: 'select, insert, update (counted_at, took_ms, figures)', ops: 'select' },
  backups: { ops: 'select' },

  change_log: { api: NEW_CHANGE, worker: NEW_CHANGE, ops: `select, ${NEW_CHANGE}` },
  cursor_secrets: { api: 'select' },
  operator_events: { api: NEW_EVENT, worker: `select, ${NEW_EVENT}`, ops: 'select' },
  retention_marks: { worker: 'select', ops: 'select' },
  retention_days: { worker: 'select', ops: 'select' },
};

/** Functions of Postgres that every role may execute by default: locks, large objects, the log. */
export const WITHHELD = '^(pg_(try_)?advisory_|lo_|loread$|lowrite$|pg_logical_emit_message$)';

export const SYSTEM_FUNCTION_RIGHTS: Readonly<Record<string, readonly Process[]>> = {
  // Used by claims of a queue, by the daily warning of expiry and by the worker that counts figures.
  'pg_try_advisory_xact_lock(int, int)': ['worker'],
  'pg_try_advisory_xact_lock(bigint)': ['worker'],
  // A pause of deliveries waits for the attempts that are being opened.
  'pg_advisory_xact_lock_shared(int, int)': ['worker'],
  'pg_advisory_xact_lock(int, int)': ['ops'],
  // Imports and new partners take turns.
  'pg_advisory_xact_lock(bigint)': ['ops'],
};

export const FUNCTION_RIGHTS: Readonly<Record<string, readonly Process[]>> = {
  'service_now()': PROCESSES,
  'service_month()': PROCESSES,
  'ulid_floor(timestamptz)': PROCESSES,
  'due_queues_1(int)': ['worker'],
  'queued_queues_1(int, text, text)': ['worker'],
  'held_queues_1()': ['worker'],
  'claim_notifications_3(int, interval, interval, interval, text[], text[], int[])': ['worker'],
  'deliveries_paused_1(text, text)': PROCESSES,
  'delivery_queue_1(text, text, int, timestamptz)': ['worker', 'ops'],
  'earlier_events_1(text, int, smallint, interval, timestamptz)': ['worker', 'ops'],
  'no_endpoint_reason_1(text, text)': ['api', 'worker'],
  'what_follows_2(deliveries, text, int, timestamptz)': ['worker', 'ops'],
  'open_attempt_1(text, int, text, int, int[], int[])': ['worker'],
  'record_attempt_1(text, int, int, jsonb, text, text, interval)': ['worker', 'ops'],
  'store_status_1(text, text, credit_applications, text, text, text)': ['api', 'worker'],
  'open_application_1(text, text, text, text, text, text, text, text, bigint, bigint, text, smallint, text, text, timestamptz, text, text, text, text)':
    ['api'],
  'apply_event_1(text, bigint, text, text, timestamptz, timestamptz, text, text, text, text, text)': [
    'api',
    'worker',
  ],
  'ids_that_stay(text, text, text)': ['ops'],
  'retention_floor(text)': ['worker', 'ops'],
  // These run with the rights of their owner, and check their arguments.
  'keep_month_partitions()': ['worker'],
  'drop_expired_month(text, text)': ['worker'],
  'delete_expired(text, text, int)': ['worker'],
  'clear_payloads(text, int)': ['worker'],
};
