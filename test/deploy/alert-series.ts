/**
 * Series for promtool, in its notation (`0+1x300`: 0, 1, 2 … 300, one a minute): of the fault that an alert is for, and of a healthy service.
 * `at`: when the alert is looked at.
 */
export const ALERT_SERIES: Readonly<
  Record<
    string,
    {
      readonly at?: string;
      readonly series: Readonly<
        Record<string, string | { readonly fault: string; readonly healthy: string }>
      >;
    }
  >
> = {
  ProcessDown: { series: { 'up{job="pfqs-worker", instance="a"}': { fault: '0x300', healthy: '1x300' } } },
  ApiFails: {
    series: {
      'pfqs_http_request_seconds_count{route="/v1/finance-quote", status="200"}': '0+1000x300',
      'pfqs_http_request_seconds_count{route="/v1/finance-quote", status="500"}': {
        fault: '0+20x300',
        healthy: '0+5x300',
      },
    },
  },
  QuotesSlow: {
    series: {
      'pfqs_http_request_seconds_bucket{route="/v1/finance-quote", le="0.25"}': {
        fault: '0+900x300',
        healthy: '0+1000x300',
      },
      'pfqs_http_request_seconds_bucket{route="/v1/finance-quote", le="1"}': '0+1000x300',
      'pfqs_http_request_seconds_bucket{route="/v1/finance-quote", le="+Inf"}': '0+1000x300',
    },
  },
  QuotesQueue: { series: { 'pfqs_quotes_waiting{instance="a"}': { fault: '600x300', healthy: '400x300' } } },
  CatalogueUntrusted: {
    series: { 'pfqs_catalogue_trusted{instance="a"}': { fault: '0x300', healthy: '1x300' } },
  },
  RateLimitInMemory: {
    series: { 'pfqs_rate_limit_fallback_total{instance="a"}': { fault: '0+1x300', healthy: '7x300' } },
  },
  EndpointCapped: {
    series: { pfqs_notifications_oldest_capped_seconds: { fault: '1000x300', healthy: '800x300' } },
  },
  BacklogOld: {
    series: {
      pfqs_notifications_oldest_pending_seconds: { fault: '400x300', healthy: '200x300' },
      // Another partner's, behind its slow endpoint: that is EndpointCapped, and hides nothing.
      pfqs_notifications_capped: '20x300',
    },
  },
  OutboxSlow: {
    series: {
      'pfqs_outbox_lag_seconds_bucket{le="5"}': { fault: '0+90x300', healthy: '0+100x300' },
      'pfqs_outbox_lag_seconds_bucket{le="30"}': '0+100x300',
      'pfqs_outbox_lag_seconds_bucket{le="+Inf"}': '0+100x300',
    },
  },
  DispatchFails: {
    series: { 'pfqs_dispatch_error_total{instance="a"}': { fault: '0+2x300', healthy: '0+1x3 3x297' } },
  },
  FiguresMissing: {
    series: {
      pfqs_notifications_pending: '0x300',
      pfqs_notifications_undelivered: { fault: '0x150 _x150', healthy: '0x300' },
      pfqs_notifications_held: '0x300',
      pfqs_lender_events_waiting: '0x300',
      pfqs_partition_months_ahead: '12x300',
    },
  },
  DeliveriesMended: {
    series: { 'pfqs_delivery_reconciled_total{instance="a"}': { fault: '0+1x300', healthy: '9x300' } },
  },
  DeliveryPlacesTaken: {
    series: {
      'pfqs_delivery_places{instance="a"}': '400x300',
      'pfqs_deliveries_under_way{instance="a"}': { fault: '380x300', healthy: '300x300' },
    },
  },
  DeliveriesFail: {
    series: {
      'pfqs_delivery_attempt_seconds_count{environment="live", outcome="delivered"}': '0+100x300',
      'pfqs_delivery_attempt_seconds_count{environment="live", outcome="connect"}': {
        fault: '0+150x300',
        healthy: '0+50x300',
      },
    },
  },
  EndpointBlocked: {
    series: {
      'pfqs_delivery_attempt_seconds_count{environment="live", outcome="blocked_address"}': {
        fault: '0+1x300',
        healthy: '0x300',
      },
    },
  },
  ClockWrong: {
    series: { 'pfqs_clock_skew_seconds{instance="a"}': { fault: '-200x300', healthy: '-20x300' } },
  },
  PartnerFailing: { series: { pfqs_partners_failing: { fault: '1x300', healthy: '0x300' } } },
  EndpointFailing: {
    series: { 'pfqs_webhook_endpoints_failing{hours="24"}': { fault: '1x300', healthy: '0x300' } },
  },
  EndpointDisabled: {
    series: {
      // It ends with the repair.
      'pfqs_webhook_endpoint_given_up{endpoint="whe_1", reason="gone"}': {
        fault: '_x100 1x200',
        healthy: '_x100 1x75 stale',
      },
    },
  },
  HeldExpireSoon: { series: { pfqs_notifications_expiring: { fault: '3x300', healthy: '0x300' } } },
  DeliveriesPaused: {
    series: { pfqs_notifications_oldest_paused_seconds: { fault: '90000x300', healthy: '80000x300' } },
  },
  LenderEventsOverdue: {
    series: { pfqs_lender_events_overdue_seconds: { fault: '300x300', healthy: '60x300' } },
  },
  LenderStepsMissing: {
    series: { pfqs_lender_steps_missing_total: { fault: '0x150 1x150', healthy: '1x300' } },
  },
  QuoteCrowded: {
    series: { pfqs_crowded_quote_applications_total: { fault: '0x150 1x150', healthy: '400x300' } },
  },
  NotificationsLost: {
    series: {
      'pfqs_notifications_ended_total{state="failed", reason="exhausted", event="application"}': {
        fault: '0x150 1x150',
        healthy: '3x300',
      },
      // A test that failed is lost to nobody.
      'pfqs_notifications_ended_total{state="failed", reason="exhausted", event="test"}': '0+1x300',
    },
  },
  TestLimitReached: {
    series: {
      'pfqs_test_limit_refused_total{environment="live"}': { fault: '0x150 1x150', healthy: '4x300' },
    },
  },
  RetentionRemovedMuch: {
    series: {
      'pfqs_retention_removed_much_total{kind="quotes"}': { fault: '0x150 7000x150', healthy: '7000x300' },
    },
  },
  PartitionsMissing: { series: { pfqs_partition_months_ahead: { fault: '2x300', healthy: '11x300' } } },
  ArchiveFails: { series: { pfqs_archive_failing_seconds: { fault: '400x300', healthy: '90x300' } } },
  BackupOld: {
    // Prometheus' time of these tests begins at 0.
    at: '30h',
    series: {
      pfqs_backup_completed_timestamp_seconds: { fault: '0x2000', healthy: '82800x2000' },
    },
  },
  DiskFills: {
    series: {
      'node_filesystem_avail_bytes{mountpoint="/", fstype="ext4"}': { fault: '10x300', healthy: '20x300' },
      'node_filesystem_size_bytes{mountpoint="/", fstype="ext4"}': '100x300',
      'node_filesystem_readonly{mountpoint="/", fstype="ext4"}': '0x300',
      // Images that can only be read are always full.
      'node_filesystem_avail_bytes{mountpoint="/rom", fstype="ext4"}': '0x300',
      'node_filesystem_size_bytes{mountpoint="/rom", fstype="ext4"}': '100x300',
      'node_filesystem_readonly{mountpoint="/rom", fstype="ext4"}': '1x300',
    },
  },
  CertificateEnds: {
    series: {
      'probe_ssl_earliest_cert_expiry{instance="172.31.250.2:8443"}': {
        fault: '1728000x300',
        healthy: '2592000x300',
      },
    },
  },
  TemporalCertificateEnds: {
    series: {
      'pfqs_temporal_certificate_expires_timestamp_seconds{instance="a"}': {
        fault: '2500000x300',
        healthy: '31536000x300',
      },
      'pfqs_temporal_certificate_expires_timestamp_seconds{instance="b"}': '31536000x300',
    },
  },
  WorkflowTasksFail: {
    series: {
      'temporal_workflow_task_execution_failed_total{failure_reason="NonDeterminismError"}': {
        fault: '0+1x300',
        healthy: '2x300',
      },
    },
  },
  TemporalFails: {
    series: {
      temporal_request_total: '0+1000x300',
      'temporal_request_failure_total{status_code="UNAVAILABLE"}': { fault: '0+80x300', healthy: '0+10x300' },
      'temporal_request_failure_total{status_code="NOT_FOUND"}': '0+500x300',
    },
  },
  WorkflowSlotsTaken: {
    series: {
      'temporal_worker_task_slots_available{worker_type="WorkflowWorker", instance="a"}': {
        fault: '0x300',
        healthy: '5x300',
      },
    },
  },
  WorkflowTasksWait: {
    series: {
      'temporal_workflow_task_schedule_to_start_latency_seconds_bucket{le="1"}': {
        fault: '0+90x300',
        healthy: '0+100x300',
      },
      'temporal_workflow_task_schedule_to_start_latency_seconds_bucket{le="10"}': '0+100x300',
      'temporal_workflow_task_schedule_to_start_latency_seconds_bucket{le="+Inf"}': '0+100x300',
    },
  },
  NoCurrentBuild: {
    series: {
      'pfqs_worker_build_current{instance="a"}': { fault: '0x300', healthy: '1x300' },
      'pfqs_worker_build_current{instance="b"}': '0x300',
    },
  },
  EventLoopBlocked: {
    series: { 'nodejs_eventloop_lag_p99_seconds{instance="a"}': { fault: '0.3x300', healthy: '0.1x300' } },
  },
  MemoryGrows: {
    series: {
      'process_resident_memory_bytes{instance="a"}': { fault: '750000000x300', healthy: '300000000x300' },
    },
  },
  FilesRunOut: {
    series: {
      'process_open_fds{instance="a"}': { fault: '900x300', healthy: '700x300' },
      'process_max_fds{instance="a"}': '1000x300',
    },
  },
};
