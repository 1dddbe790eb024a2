/** Runs a process' entry point; what it throws ends the process with 1 and a line that says what. */
export function main(name: string, run: () => Promise<void>): void {
  run().catch((error: unknown) => {
    console.error(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  });
}
