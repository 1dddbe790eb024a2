import { setFlagsFromString } from 'node:v8';
import vm from 'node:vm';
import { TestEnvironment } from 'jest-environment-node';

/**
 * Each test file gets modules of its own, and Jest would compile every one of them anew: a second of each file that starts an API
 * or a worker. Here a process of Jest compiles a module once, and runs the compiled script in the context of each file.
 */
const compiled = new Map<string, { code: string; script: vm.Script }>();
// Else V8 forgets functions that have not run for a while.
setFlagsFromString('--no-flush-bytecode');

vm.compileFunction = (code, params = [], { filename = '', parsingContext } = {}) => {
  let known = compiled.get(filename);
  if (known?.code !== code) {
    const head = `(function (${params.join(',')}) {`;
    known = { code, script: new vm.Script(`${head}${code}\n})`, { filename, columnOffset: -head.length }) };
    compiled.set(filename, known);
  }
  return known.script.runInContext(parsingContext as vm.Context);
};

// oxlint-disable-next-line import/no-default-export -- Jest asks for one.
export default TestEnvironment;
