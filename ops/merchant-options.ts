import { Option, type Command } from 'commander';
import { idsOf, yesOrNo } from './arguments';

/** What they leave, each absent when it was not given. */
export interface SetUp {
  readonly tradingName?: string;
  readonly fcaAuthorised?: boolean;
  readonly showProducts?: boolean;
  readonly summaryStyle?: string;
  readonly depositFloorPercent?: string;
  readonly depositFloorAmount?: string;
  /** False: `--no-deposit-floor`. */
  readonly depositFloor?: boolean;
  readonly partnerAccess?: string;
  readonly partners?: readonly string[];
}

/** Options for every part of a merchant's set-up. */
export function setUpOptions(command: Command): Command {
  return command
    .option('--trading-name <name>', 'name on the summary')
    .option('--fca-authorised <yes|no>', 'may communicate regulated credit promotions', yesOrNo)
    .option('--show-products <yes|no>', 'give the product list besides the summary', yesOrNo)
    .addOption(
      new Option('--summary-style <style>', 'best offer, or the plain headline').choices([
        'offer',
        'headline',
      ]),
    )
    .option('--deposit-floor-percent <percent>', 'merchant-wide minimum deposit, share of the price')
    .option('--deposit-floor-amount <amount>', 'merchant-wide minimum deposit, fixed; the larger counts')
    .option('--no-deposit-floor', 'no merchant-wide minimum')
    .addOption(new Option('--partner-access <access>', 'whom it exists for').choices(['all', 'restricted']))
    .option('--partners <ids>', 'whom it exists for when restricted, comma-separated', idsOf('partner'));
}

/** The row of an import file that the given options amount to; options that were not given are absent. */
export function rowFromOptions(options: SetUp): Record<string, unknown> {
  const floor = { percent: options.depositFloorPercent, amount: options.depositFloorAmount };
  const floorGiven = floor.percent !== undefined || floor.amount !== undefined;
  const row = {
    trading_name: options.tradingName,
    fca_authorised: options.fcaAuthorised,
    show_products: options.showProducts,
    summary_style: options.summaryStyle,
    deposit_floor: floorGiven ? floor : options.depositFloor === false ? null : undefined,
    partner_access: options.partnerAccess,
    partners: options.partners,
  };
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined));
}
