import type { RunCommand } from '#server/commands/commands.ts'
import { runKeyAction } from '#server/commands/keys.ts'
import { databaseUsage } from '#server/commands/open-database.ts'
import { stsExplainCommand } from '#server/commands/sts-explain.ts'
import { stsTestCommand } from '#server/commands/sts-test.ts'

const usage = `Usage: gatehouse sts explain --config DIR [OPTIONS] ENDPOINT
       gatehouse sts test --config DIR [OPTIONS] FILE
       gatehouse sts publish --config DIR [--endpoint NAME] [OPTIONS]

explain  Show what a token endpoint would do for a workload, and why; gatehouse sts explain --help has its options
test     Check that token endpoints decide as FILE expects; gatehouse sts test --help has its options
publish  Write the documents of endpoints now, and read them back; exit code 1 if that fails

${databaseUsage}
  --config DIR      the folder of YAML, or kubernetes:NAMESPACE
  --secrets DIR     files for secrets (secrets/ of the configuration)
  --endpoint NAME   this one only
  --json            print JSON`

/** `gatehouse sts explain` and `sts test`; `gatehouse sts publish` is the same as `gatehouse keys publish`. */
export const stsCommand: RunCommand = (args, io) => {
  if (args[0] === 'explain') return stsExplainCommand(args.slice(1), io)
  if (args[0] === 'test') return stsTestCommand(args.slice(1), io)
  return runKeyAction({ command: 'sts', names: ['publish'], known: ['explain', 'test', 'publish'], usage }, args, io)
}
