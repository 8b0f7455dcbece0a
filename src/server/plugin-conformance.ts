import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openPluginTarget } from '#modules/targets/plugin/plugin-target.ts'
import { type TargetConformanceOptions, targetConformance } from '#sdk/conformance/target-conformance.ts'

interface PluginConformanceOptions extends TargetConformanceOptions {
  /** The file with the plug-in's code. */
  readonly module: URL
  /** The argument of `init`. */
  readonly parameters?: Readonly<Record<string, readonly string[]>>
  /** Runs before each case, to empty the system of the target. */
  readonly before?: () => Promise<void> | void
  readonly timeoutMillis?: number
}

/** The target conformance suite for a plug-in without a configuration, for its author. */
export function pluginTargetConformance(name: string, options: PluginConformanceOptions): void {
  const { module, parameters = {}, before, timeoutMillis = 10_000, lookups = true, ...suite } = options
  const file = fileURLToPath(module)
  const code = {
    inline: undefined,
    file,
    includes: [],
    folder: dirname(file),
    timeoutMillis,
    memoryMegabytes: 64,
    config: parameters,
  }
  const open = async () => {
    await before?.()
    const target = await openPluginTarget(
      { code, requireAllFunctions: false, lookups, groups: undefined },
      { name, log: silentLogger, clock: systemClock, javaScript: () => undefined },
    )
    return { target, close: async () => target.close?.() }
  }
  targetConformance(name, open, { ...suite, lookups })
}
