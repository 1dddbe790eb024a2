import { findEndpoint, setEndpointState } from '../../../db/endpoints/endpoints';
import type { DeliveryOutcome } from '../../../domain/delivery-outcome';
import { useApi } from '../../support/api';
import { openApplication } from '../../support/applications';
import { addEndpoint } from '../../../testbed/notifications';
import { addPartner, attempt } from '../../support/partner-events';
import { DELIVERED, FAILED } from '../../../testbed/values';

const api = useApi();
const read = async (key = api.keys.test) => {
  const answer = await api.get('/v1/webhook-endpoint', key);
  expect(answer.status).toBe(200);
  return answer.body.data;
};
const NONE = {
  state: 'none',
  url: null,
  disabled_at: null,
  disabled_reason: null,
  failing_since: null,
  last_success_at: null,
  held: 0,
};
const A_MOMENT = expect.stringMatching(/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

test('shows where the events of the environment of the key go, since when it fails, and what is held', async () => {
  // A new key is known in the API within milliseconds, not at once.
  const { test: other } = await addPartner(api.database, 'P100002');
  const { partnerId } = api;
  const { db } = api.database;
  expect(await read()).toEqual(NONE);
  await openApplication(api.database, { partnerId });
  expect(await read()).toEqual({ ...NONE, held: 1 });

  await addEndpoint(api.database, { partnerId });
  const active = { ...NONE, state: 'active', url: 'https://hook.example/x' };
  expect(await read()).toEqual({ ...active, held: 1 });
  const send = async (outcome: DeliveryOutcome) => {
    const { applicationId } = await openApplication(api.database, { partnerId });
    const [row] = await api.database
      .sql`select notification_id as id from notifications where application_id = ${applicationId}`;
    await attempt(api.database, String(row?.['id']), outcome);
  };
  await send(DELIVERED);
  expect(await read()).toEqual({ ...active, held: 1, last_success_at: A_MOMENT });
  await send(FAILED);
  const failing = { ...active, held: 1, last_success_at: A_MOMENT, failing_since: A_MOMENT };
  expect(await read()).toEqual(failing);
  const before = Date.now() - 5_000;
  const endpoint = await findEndpoint(db, partnerId, 'sandbox');
  await setEndpointState(db, endpoint?.endpointId ?? '', { state: 'disabled', reason: 'failing' });
  const disabled = await read();
  const why = { state: 'disabled', disabled_at: A_MOMENT, disabled_reason: 'failing' };
  expect(disabled).toEqual({ ...failing, ...why });
  expect(Date.parse(disabled.disabled_at)).toBeGreaterThan(before);

  // Each environment and each partner has its own.
  expect(await read(api.keys.live)).toEqual(NONE);
  expect(await read(other)).toEqual(NONE);
});
