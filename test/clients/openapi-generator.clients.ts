import { join } from 'node:path';
import { fileNeeds } from '../support/needs';
import { findGenerator } from './generators';
import { testClient } from './scene';

fileNeeds('Java', 'Maven', 'Python', 'Guzzle for PHP', 'openapi-generator', 'Python generators');

const generate = async (
  language: string,
  document: string,
): Promise<readonly [string, readonly string[]]> => {
  const jar = join(await findGenerator('openapi-generator'), 'openapi-generator-cli.jar');
  // A short life: compile little, collect simply.
  const flags = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];
  return ['java', [...flags, '-jar', jar, 'generate', '-g', language, '-i', document, '-o', 'generated']];
};

testClient({
  name: 'openapi-generator-python',
  // It takes no null in the body of a webhook, whose schema it does not normalize (openapi-generator 7.25).
  readsEvents: false,
  async make({ folder, document, run }) {
    await run(...(await generate('python', document)));
    const python = join(await findGenerator('Python generators'), 'bin/python');
    // The file of calls for webhooks has no types in it and is not imported (openapi-generator 7.25).
    await run(python, ['-m', 'compileall', '-q', '-x', 'webhooks_api', 'generated/openapi_client']);
    return ['env', `PYTHONPATH=${folder}/generated`, python, join(folder, 'main.py')];
  },
});

testClient({
  name: 'openapi-generator-php',
  async make({ folder, document, run }) {
    await run(...(await generate('php', document)));
    await run('sh', [
      '-c',
      'find generated/lib -name "*.php" -exec php -l {} + >lint.txt || { grep -v "^No syntax" lint.txt >&2; exit 1; }',
    ]);
    return ['php', '-d', `include_path=/usr/share/php:${folder}/generated`, join(folder, 'main.php')];
  },
});

testClient({
  name: 'openapi-generator-java',
  // As in Python.
  readsEvents: false,
  async make({ folder, document, run }) {
    await run(...(await generate('java', document)));
    const libraries = ['-DincludeScope=compile', `-DoutputDirectory=${folder}/lib`];
    const plugin = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';
    await run('mvn', ['-q', '-B', plugin, ...libraries], join(folder, 'generated'));
    const sources = 'find generated/src/main/java Main.java -name "*.java" >sources.txt';
    await run('sh', ['-c', `${sources} && javac -nowarn -d classes -cp 'lib/*' @sources.txt`]);
    return ['java', '-cp', `${folder}/classes:${folder}/lib/*`, 'Main'];
  },
});
