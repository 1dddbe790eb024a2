/** Keywords on every workflow that delivers a notification: what the Temporal UI and `ops` filter by. */
export const SEARCH_ATTRIBUTE = {
  partner: 'PartnerId',
  environment: 'Environment',
  eventType: 'EventType',
  application: 'ApplicationId',
  status: 'NotificationStatus',
} as const;

export const SEARCH_ATTRIBUTES = Object.values(SEARCH_ATTRIBUTE);
