/** Keywords on every workflow that delivers a notification: what the Temporal UI and `ops` filter by. */
export const SEARCH_ATTRIBUTES = [
  'PartnerId',
  'Environment',
  'EventType',
  'ApplicationId',
  'NotificationStatus',
] as const;
