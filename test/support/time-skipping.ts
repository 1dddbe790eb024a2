import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StackFailure } from '../../dev/failure';
import { runProgram, toolsFolder } from '../../dev/temporal/tools';

/** Of the Java SDK that the server belongs to. */
const VERSION = '1.38.0';
const MAIN_CLASS = 'io.temporal.testserver.TestServer';
const COPY_PLUGIN = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1';
const MAVEN_LIMIT_MS = 600_000;

interface TimeSkippingOptions {
  /** Gets the script that starts it, and stands on its command line: a watchdog on the folder finds it. */
  readonly directory: string;
  readonly onProgress: (message: string) => void;
}

/**
 * Makes the time-skipping test server runnable: its Java libraries, fetched once with Maven, behind a script that
 * Temporal's test package starts like a binary of its own.
 * @returns the script.
 * @throws StackFailure saying what is missing.
 */
export async function findTimeSkippingServer(options: TimeSkippingOptions): Promise<string> {
  await runProgram('java', ['-version'], { timeoutMs: 20_000 }).catch(() => {
    throw new StackFailure(
      'The time-skipping tests need Java 11 or later (apt-get install default-jre-headless maven).',
    );
  });
  const path = await toolsFolder();
  const libraries = join(path, `temporal-test-server-${VERSION}`);
  if (!existsSync(libraries)) await fetchLibraries(path, libraries, options.onProgress);
  const script = join(options.directory, 'temporal-test-server');
  // A short life: compile little, collect simply.
  const flags = '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto';
  const run = `-Dpfqs.run=${quote(options.directory)}`;
  const text = `#!/bin/sh\nexec java ${flags} ${run} -cp ${quote(`${libraries}/*`)} ${MAIN_CLASS} "$@"\n`;
  await writeFile(script, text, { mode: 0o755 });
  return script;
}

/** Into a folder of its own, moved when complete: two at once both end up with a whole one. */
async function fetchLibraries(
  folder: string,
  libraries: string,
  onProgress: (message: string) => void,
): Promise<void> {
  const startedAt = Date.now();
  onProgress('fetching the time-skipping test server with Maven: under a minute, this once');
  const draft = await mkdtemp(join(folder, 'java-'));
  try {
    await writeFile(join(draft, 'pom.xml'), POM);
    await mkdir(join(draft, 'lib'));
    await runProgram(
      'mvn',
      ['-q', '-B', `${COPY_PLUGIN}:copy-dependencies`, '-DoutputDirectory=lib', '-DincludeScope=runtime'],
      { cwd: draft, timeoutMs: MAVEN_LIMIT_MS },
    );
    await rename(join(draft, 'lib'), libraries).catch((error: unknown) => {
      if (!existsSync(libraries)) throw error;
    });
  } catch (error) {
    throw new StackFailure(
      `The time-skipping test server cannot be fetched (apt-get install maven?): ${(error as Error).message}`,
    );
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  onProgress(`fetched in ${Math.round((Date.now() - startedAt) / 1_000)} s`);
}

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>temporal-test-server-libraries</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>io.temporal</groupId>
      <artifactId>temporal-test-server</artifactId>
      <version>${VERSION}</version>
    </dependency>
  </dependencies>
</project>
`;

/** As a word of the shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
