// oxlint-disable-next-line import/no-default-export -- Jest asks for one.
export default async function globalTeardown(): Promise<void> {
  await (globalThis as { pfqsEndOfRun?: () => Promise<void> }).pfqsEndOfRun?.();
}
