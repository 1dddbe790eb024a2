import { proxyLocalActivities } from '@temporalio/workflow';

export interface BareInput {
  readonly eventId: string;
  readonly url: string;
}

export interface BareActivities {
  readonly send: (input: BareInput) => Promise<number>;
}

const { send } = proxyLocalActivities<BareActivities>({ startToCloseTimeout: '40 seconds' });

/** The best that the engine can do: one local activity that signs and POSTs. */
export async function bareDelivery(input: BareInput): Promise<number> {
  return send(input);
}
