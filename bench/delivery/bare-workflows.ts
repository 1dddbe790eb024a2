import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';

/** What anyone would write first: the activity signs and POSTs. */
export interface BareInput {
  readonly eventId: string;
  readonly url: string;
}

export interface BareActivities {
  readonly send: (input: BareInput) => Promise<number>;
}

const regular = proxyActivities<BareActivities>({ startToCloseTimeout: '40 seconds' });
const local = proxyLocalActivities<BareActivities>({ startToCloseTimeout: '40 seconds' });

/** Floor (a). */
export async function bareRegular(input: BareInput): Promise<number> {
  return regular.send(input);
}

/** Floor (c). */
export async function bareLocal(input: BareInput): Promise<number> {
  return local.send(input);
}
