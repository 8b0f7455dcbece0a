import type { RunCommand } from '#server/commands/commands.ts'
import { runKeyAction } from '#server/commands/keys.ts'
import { stsExplainCommand } from '#server/commands/sts-explain.ts'

/**
 * `gatehouse sts explain`, and `gatehouse sts publish`, which is the same as `gatehouse keys publish`, where one looks
 * for it.
 */
export const stsCommand: RunCommand = (args, io) =>
  args[0] === 'explain' ? stsExplainCommand(args.slice(1), io) : runKeyAction('sts', ['publish'], args, io)
