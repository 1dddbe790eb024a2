import {
  DELIVERY_CHANGES,
  type DeliveryChange,
  type DeliveryEvent,
  type DeliveryState,
} from '../../../domain/notification-states';

/** The row after a change of the table; null when it may not happen in this state. */
export function changed<Row extends { readonly state: DeliveryState; readonly generation: number }>(
  event: DeliveryEvent,
  d: Row,
  now: number,
  given: Partial<Row> = {},
): Row | null {
  const change: DeliveryChange = DELIVERY_CHANGES[event];
  if (!change.from.includes(d.state)) return null;
  const after: Record<string, unknown> = { ...d };
  for (const field of change.clears ?? []) after[field] = field === 'step' ? 0 : null;
  for (const field of change.nowIfEmpty ?? []) after[field] ??= now;
  for (const field of change.now ?? []) after[field] = now;
  const row = after as unknown as Row;
  const generation = d.generation + (change.newGeneration ? 1 : 0);
  return { ...row, state: change.to ?? d.state, generation, ...given };
}
