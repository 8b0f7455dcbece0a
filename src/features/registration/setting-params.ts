import type { Issues, Path } from '#kernel/issues.ts'
import type { Params } from '#sdk/module/params.ts'

/** Parameters that are written as a list of `name=value`. A setting without an equals sign is reported and skipped. */
export function settingParams(
  settings: readonly string[],
  path: Path,
  settingPath: (index: number) => Path,
  issues: Issues,
): Params {
  const found = new Map<string, { readonly value: string; readonly path: Path }[]>()
  for (const [index, setting] of settings.entries()) {
    const equals = setting.indexOf('=')
    const name = setting.slice(0, Math.max(equals, 0)).trim()
    if (name === '') {
      issues.error(settingPath(index), `a setting is written "name=value", not "${setting}"`)
      continue
    }
    found.set(name, [...(found.get(name) ?? []), { value: setting.slice(equals + 1), path: settingPath(index) }])
  }
  return {
    names: () => found.keys(),
    values: (name) => found.get(name)?.map(({ value }) => value) ?? [],
    pathOf: (name, index = 0) => found.get(name)?.[index]?.path ?? path,
    isSecret: () => false,
  }
}
