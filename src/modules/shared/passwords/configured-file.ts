import { existsSync } from 'node:fs'
import { isAbsolute, relative, resolve } from 'node:path'
import type { Issues } from '#kernel/issues.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

/** The full path of a file that a parameter names. One that is not there, or not inside the configuration folder, is an error. */
export function configuredFile(
  parameter: string,
  name: string,
  params: Params,
  issues: Issues,
  { folder }: ParseContext,
): string | undefined {
  const file = resolve(folder, name)
  const inside = relative(folder, file)
  if (isAbsolute(name) || inside.startsWith('..')) {
    issues.error(params.pathOf(parameter), 'must be a file in the configuration folder')
    return undefined
  }
  if (!existsSync(file)) {
    issues.error(params.pathOf(parameter), `"${parameter}": no such file in the configuration folder: ${inside}`)
  }
  return file
}
