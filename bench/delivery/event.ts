import { APPLICATION_EVENT_EXAMPLES } from '../../scripts/openapi/examples';
import type { ApplicationEvent } from '../../contracts/webhook-event';

const { value: example } = APPLICATION_EVENT_EXAMPLES.accepted;

/** An event as our partners get them, of now: what the floors make and send, and what is stored in bulk. */
export function benchEvent(eventId: string, applicationId: string): ApplicationEvent {
  const data = { ...example.data, credit_application_id: applicationId };
  return { ...example, event_id: eventId, created_at: new Date().toISOString(), data };
}
