/**
 * What Jest's JSON reports say together.
 * `failed REPORT`: the failed test files, a line each; none when there is no report.
 * `total NAME=REPORT[,AGAIN] ...`: a line for each suite, then "N passed, N failed". A file that ran again counts as it ended then, and is named;
 * each failure is told again.
 * Ends with 1 when a test failed, or a suite left no report or ran nothing (that counts as one failure).
 */
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

const say = (line) => process.stdout.write(`${line}\n`);
const read = (path) => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).testResults : []);
const failedFiles = (files) => files.filter(({ status }) => status === 'failed');
const count = (files, status) =>
  files.reduce((sum, file) => sum + file.assertionResults.filter((test) => test.status === status).length, 0);
/** A file that could not run has no failed test, and counts as one. */
const failures = (files) =>
  count(files, 'failed') + failedFiles(files).filter((file) => count([file], 'failed') === 0).length;

/** What failed and why, in a few lines: whoever reads the end of a long log needs no other. */
const reasons = ({ name, message, assertionResults }) => {
  const failed = assertionResults.filter(({ status }) => status === 'failed');
  const tests = failed.map(({ fullName, failureMessages }) => [fullName, failureMessages.join('\n')]);
  return (tests.length > 0 ? tests : [[relative('.', name), message]]).map(
    ([what, why]) =>
      `  ${what}\n${stripVTControlCharacters(why)
        .split('\n')
        .slice(0, 12)
        .map((line) => `    ${line}`)
        .join('\n')}`,
  );
};

function total(suites) {
  let [passed, failed] = [0, 0];
  for (const suite of suites) {
    const [name, paths] = suite.split('=');
    const [first = [], second = []] = paths.split(',').map(read);
    const again = new Set(second.map((file) => file.name));
    const files = [...first.filter((file) => !again.has(file.name)), ...second];
    const ran = count(files, 'passed');
    const bad = failures(files) + (ran === 0 ? 1 : 0);
    for (const file of failedFiles(first).filter((one) => again.has(one.name))) {
      const end = failures(second.filter((one) => one.name === file.name)) === 0 ? 'passed' : 'failed';
      say(`${relative('.', file.name)}: ${failures([file])} failed beside others, ${end} alone`);
    }
    for (const file of failedFiles([...first, ...second])) for (const line of reasons(file)) say(line);
    say(`${name}: ${ran} passed, ${bad} failed`);
    passed += ran;
    failed += bad;
  }
  say(`${passed} passed, ${failed} failed`);
  return failed === 0;
}

const [command, ...rest] = process.argv.slice(2);
if (command === 'failed') for (const { name } of failedFiles(read(rest[0]))) say(name);
else process.exitCode = total(rest) ? 0 : 1;
