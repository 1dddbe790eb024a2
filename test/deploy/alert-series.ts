/** The series of a test, in promtool's notation (`0+1x300`: 0, 1, 2 … 300, one a minute): for the fault and for a healthy service, or for both. */
type Series = Readonly<Record<string, string | readonly [fault: string, healthy: string]>>;

/** For each alert the series of the fault that it is for, and of a healthy service. */
export const ALERT_SERIES: Readonly<Record<string, Series>> = {
  ProcessDown: { 'up{job="pfqs-worker", instance="a"}': ['0x300', '1x300'] },
  ApiFails: {
    'pfqs_http_request_seconds_count{route="/v1/finance-quote", status="200"}': '0+1000x300',
    'pfqs_http_request_seconds_count{route="/v1/finance-quote", status="500"}': ['0+20x300', '0+5x300'],
  },
  QuotesSlow: {
    'pfqs_http_request_seconds_bucket{route="/v1/finance-quote", le="0.25"}': ['0+900x300', '0+1000x300'],
    'pfqs_http_request_seconds_bucket{route="/v1/finance-quote", le="1"}': '0+1000x300',
    'pfqs_http_request_seconds_bucket{route="/v1/finance-quote", le="+Inf"}': '0+1000x300',
  },
  QuotesQueue: { 'pfqs_quotes_waiting{instance="a"}': ['600x300', '400x300'] },
  CatalogueUntrusted: { 'pfqs_catalogue_trusted{instance="a"}': ['0x300', '1x300'] },
  RateLimitInMemory: { 'pfqs_rate_limit_fallback_total{instance="a"}': ['0+1x300', '7x300'] },
  EndpointCapped: { pfqs_notifications_oldest_capped_seconds: ['1000x300', '800x300'] },
  BacklogOld: {
    pfqs_notifications_oldest_pending_seconds: ['400x300', '200x300'],
    // Another partner's, behind its slow endpoint: that is EndpointCapped, and hides nothing.
    pfqs_notifications_capped: '20x300',
  },
  RowsRefused: { 'pfqs_delivery_refused_total{instance="a"}': ['0+1x300', '0+0x100 2x200'] },
  OutboxSlow: {
    // Healthy: what an outage had kept back was started eleven to eight minutes ago.
    'pfqs_outbox_lag_seconds_bucket{le="5"}': ['0+90x300', '0+100x168 16890+90x3 17260+100x127'],
    'pfqs_outbox_lag_seconds_bucket{le="30"}': '0+100x300',
    'pfqs_outbox_lag_seconds_bucket{le="+Inf"}': '0+100x300',
  },
  DispatchFails: { 'pfqs_dispatch_error_total{instance="a"}': ['0+2x300', '0+1x3 3x297'] },
  FiguresMissing: {
    pfqs_notifications_pending: '0x300',
    pfqs_notifications_undelivered: ['0x150 _x150', '0x300'],
    pfqs_notifications_held: '0x300',
    pfqs_lender_events_waiting: '0x300',
    pfqs_partition_months_ahead: '12x300',
    pfqs_figures_age_seconds: '12x300',
  },
  DeliveriesRepaired: { 'pfqs_delivery_reconciled_total{instance="a"}': ['0+1x300', '9x300'] },
  DeliverySlotsTaken: {
    'pfqs_delivery_slots{instance="a"}': '400x300',
    'pfqs_deliveries_under_way{instance="a"}': ['380x300', '300x300'],
  },
  DeliveriesOverdue: {
    pfqs_notifications_oldest_overdue_seconds: '600x300',
    // A slow endpoint, whose deliveries ask for a slot again and again.
    'pfqs_delivery_busy_total{instance="a"}': ['5x300', '0+1x300'],
    'pfqs_network_outage_seconds{instance="a"}': '0x300',
  },
  SendsNotPolled: {
    'temporal_num_pollers{poller_type="activity_task", task_queue="notifications-sends"}': ['0x300', '5x300'],
    'temporal_num_pollers{poller_type="activity_task", task_queue="notifications"}': '5x300',
  },
  DeliveriesFail: {
    'pfqs_delivery_attempt_seconds_count{environment="live", outcome="delivered"}': '0+100x300',
    'pfqs_delivery_attempt_seconds_count{environment="live", outcome="connect"}': ['0+150x300', '0+50x300'],
  },
  EndpointBlocked: {
    'pfqs_delivery_attempt_seconds_count{environment="live", outcome="blocked_address"}': [
      '0+1x300',
      '0x300',
    ],
  },
  NetworkOutage: { 'pfqs_network_outage_seconds{instance="a"}': ['0+60x300', '0x300'] },
  ClockWrong: { 'pfqs_clock_skew_seconds{instance="a"}': ['-200x300', '-20x300'] },
  PartnerFailing: { pfqs_partners_failing: ['1x300', '0x300'] },
  EndpointFailing: { 'pfqs_webhook_endpoints_failing{hours="24"}': ['1x300', '0x300'] },
  EndpointDisabled: {
    'pfqs_webhook_endpoint_given_up{endpoint="whe_1", reason="gone"}': ['_x100 1x200', '_x100 1x75 stale'],
  },
  HeldExpireSoon: { pfqs_notifications_expiring: ['3x300', '0x300'] },
  DeliveriesPaused: { pfqs_notifications_oldest_paused_seconds: ['90000x300', '80000x300'] },
  LenderEventsOverdue: { pfqs_lender_events_overdue_seconds: ['300x300', '60x300'] },
  LenderStepsMissing: { pfqs_lender_steps_missing_total: ['0x150 1x150', '1x300'] },
  LenderContradicts: {
    'pfqs_lender_contradictions{lender="lender_a", environment="live", instance="a"}': ['4x300', '3x300'],
    // Two workers show the same, another lender has its own, and the sandbox is for trying.
    'pfqs_lender_contradictions{lender="lender_a", environment="live", instance="b"}': '3x300',
    'pfqs_lender_contradictions{lender="lender_b", environment="live", instance="a"}': '3x300',
    'pfqs_lender_contradictions{lender="lender_b", environment="sandbox", instance="a"}': '9x300',
  },
  QuoteCrowded: { pfqs_crowded_quote_applications_total: ['0x150 1x150', '400x300'] },
  NotificationsLost: {
    'pfqs_notifications_ended_total{state="failed", reason="exhausted", event="application"}': [
      '0x150 1x150',
      '3x300',
    ],
    // A test that failed is no loss.
    'pfqs_notifications_ended_total{state="failed", reason="exhausted", event="test"}': '0+1x300',
  },
  TestLimitReached: { 'pfqs_test_limit_refused_total{environment="live"}': ['0x150 1x150', '4x300'] },
  RetentionRemovedMuch: {
    'pfqs_retention_removed_much_total{kind="quotes"}': ['0x150 7000x150', '7000x300'],
  },
  PartitionsMissing: { pfqs_partition_months_ahead: ['2x300', '11x300'] },
  ArchiveFails: { pfqs_archive_failing_seconds: ['400x300', '90x300'] },
  LoginSettings: { pfqs_login_settings: ['1x300', '0x300'] },
  BackupOld: { pfqs_backup_completed_timestamp_seconds: ['0x2000', '82800x2000'] },
  DiskFills: {
    'node_filesystem_avail_bytes{mountpoint="/", fstype="ext4"}': ['10x300', '20x300'],
    'node_filesystem_size_bytes{mountpoint="/", fstype="ext4"}': '100x300',
    'node_filesystem_readonly{mountpoint="/", fstype="ext4"}': '0x300',
    // Images that can only be read are always full.
    'node_filesystem_avail_bytes{mountpoint="/rom", fstype="ext4"}': '0x300',
    'node_filesystem_size_bytes{mountpoint="/rom", fstype="ext4"}': '100x300',
    'node_filesystem_readonly{mountpoint="/rom", fstype="ext4"}': '1x300',
  },
  CertificateEnds: {
    'probe_ssl_earliest_cert_expiry{instance="172.31.250.2:8443"}': ['1728000x300', '2592000x300'],
  },
  TemporalCertificateEnds: {
    'pfqs_temporal_certificate_expires_timestamp_seconds{instance="a"}': ['2500000x300', '31536000x300'],
    'pfqs_temporal_certificate_expires_timestamp_seconds{instance="b"}': '31536000x300',
    'pfqs_temporal_certificate_lifetime_seconds{instance="a"}': '31536000x300',
    'pfqs_temporal_certificate_lifetime_seconds{instance="b"}': '31536000x300',
    // Of a day, with half of it left.
    'pfqs_temporal_certificate_expires_timestamp_seconds{instance="c"}': '43200+60x300',
    'pfqs_temporal_certificate_lifetime_seconds{instance="c"}': '86400x300',
  },
  WorkflowTasksFail: {
    'temporal_workflow_task_execution_failed_total{failure_reason="NonDeterminismError"}': [
      '0+1x300',
      '2x300',
    ],
  },
  TemporalFails: {
    temporal_request_total: '0+1000x300',
    'temporal_request_failure_total{status_code="UNAVAILABLE"}': ['0+80x300', '0+10x300'],
    'temporal_request_failure_total{status_code="NOT_FOUND"}': '0+500x300',
  },
  WorkflowSlotsTaken: {
    'temporal_worker_task_slots_available{worker_type="WorkflowWorker", instance="a"}': ['0x300', '5x300'],
  },
  WorkflowTasksWait: {
    'temporal_workflow_task_schedule_to_start_latency_seconds_bucket{le="1"}': ['0+90x300', '0+100x300'],
    'temporal_workflow_task_schedule_to_start_latency_seconds_bucket{le="10"}': '0+100x300',
    'temporal_workflow_task_schedule_to_start_latency_seconds_bucket{le="+Inf"}': '0+100x300',
  },
  NoCurrentBuild: {
    'pfqs_worker_build_current{instance="a"}': ['0x300', '1x300'],
    'pfqs_worker_build_current{instance="b"}': '0x300',
  },
  EventLoopBlocked: { 'nodejs_eventloop_lag_p99_seconds{instance="a"}': ['0.3x300', '0.1x300'] },
  MemoryGrows: { 'process_resident_memory_bytes{instance="a"}': ['750000000x300', '300000000x300'] },
  FilesRunOut: {
    'process_open_fds{instance="a"}': ['900x300', '700x300'],
    'process_max_fds{instance="a"}': '1000x300',
  },
};
