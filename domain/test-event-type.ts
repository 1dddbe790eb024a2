/** Event type of a test notification: of no application, counted against the monthly limit, never held. */
export const TEST_EVENT_TYPE = 'credit_application.test';
