import { type ConfigDocument, FixedPlace } from '#config/config-document.ts'
import type { Environment } from '#config/substitute.ts'
import { Dn } from '#identity/dn.ts'
import type { Issues } from '#kernel/issues.ts'

/** The value that names the root of the virtual directory; as `#[directoryRoot]` it can be used like any other value. */
export const directoryRootValue = 'directoryRoot'

/** The root of the virtual directory unless the values say another, as in every configuration of the predecessor. */
const defaultRoot = 'o=Tremolo'

/** The environment goes first, as for every value. What is no name, or the empty one, is reported where it stands. */
export function readDirectoryRoot(
  documents: readonly ConfigDocument[],
  values: ReadonlyMap<string, string>,
  environment: Environment,
  issues: Issues,
): Dn {
  const given = environment[directoryRootValue] ?? values.get(directoryRootValue)
  if (given === undefined) return Dn.parse(defaultRoot)
  const report = (message: string): Dn => {
    const said = documents.find(({ yaml }) => yaml.scalarText([directoryRootValue]) !== undefined)
    if (said === undefined) issues.for(new FixedPlace('.')).error([directoryRootValue], message)
    else issues.for(said).error([directoryRootValue], message)
    return Dn.parse(defaultRoot)
  }
  try {
    const root = Dn.parse(given)
    return root.rdns.length === 0 ? report('the root of the directory needs a name, such as o=Tremolo') : root
  } catch (error) {
    return report(`"${given}" is not a name: ${error instanceof Error ? error.message : String(error)}`)
  }
}
