import { keepTemporalCertificates } from '../runtime/certificates/temporal-certificates';
import { main } from './main';

const HELP = {
  usage: 'node dist/bin/temporal-certificates.js FOLDER',
  purpose:
    'Makes and renews the certificates for mutual TLS with Temporal in FOLDER (authority, server, client, console), and ends.',
};

main('temporal-certificates', HELP, async () => {
  const [folder] = process.argv.slice(2);
  if (folder === undefined || folder.startsWith('-'))
    throw new Error('name the folder with authority, server, client and console');
  for (const { folder: name, brought, daysLeft } of await keepTemporalCertificates(folder, new Date()))
    console.log(
      `temporal-certificates: ${name} is valid for ${daysLeft} days, ${brought ? 'brought' : 'our own'}`,
    );
});
