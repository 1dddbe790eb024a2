/** The run's Postgres. Its address reaches the test files through the environment: they live in other processes. */
const VARIABLE = 'PFQS_TEST_POSTGRES';

/** Set-up and tear-down share one process, but not always one module registry. */
const memory = globalThis as { pfqsStopTestServer?: () => Promise<void> };

export function rememberServer(url: string, stop: () => Promise<void>): void {
  process.env[VARIABLE] = url;
  memory.pfqsStopTestServer = stop;
}

export async function stopRememberedServer(): Promise<void> {
  await memory.pfqsStopTestServer?.();
}

export function testServerUrl(): string {
  const url = process.env[VARIABLE];
  if (!url) throw new Error(`${VARIABLE} is not set: this runs only under Jest (globalSetup).`);
  return url;
}
