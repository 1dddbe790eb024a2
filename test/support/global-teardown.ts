import { stopRememberedServer } from './test-server';

// oxlint-disable-next-line import/no-default-export -- Jest asks for one.
export default async function globalTeardown(): Promise<void> {
  await stopRememberedServer();
}
