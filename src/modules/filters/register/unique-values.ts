import type { Directory } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { FormAttribute } from '#sdk/form-attribute.ts'
import type { UniqueValue } from '#sdk/registrations.ts'

const everywhere = new Dn([])

/** The values that nobody else may have. */
export const uniqueValues = (
  attributes: readonly FormAttribute[],
  values: ReadonlyMap<string, string>,
): UniqueValue[] =>
  attributes.flatMap(({ name, unique }) => {
    const value = values.get(name)
    return unique && value !== undefined ? [{ attribute: name, value }] : []
  })

/** Those that somebody in the directory has. */
export async function takenValues(
  directory: Pick<Directory, 'search'>,
  values: readonly UniqueValue[],
): Promise<UniqueValue[]> {
  const found = await inParallel(values, 4, async ({ attribute, value }) => {
    const filter = { kind: 'equal', attribute, value } as const
    return await directory.search({ base: everywhere, scope: 'sub', filter, limit: 1, attributes: [attribute] })
  })
  return values.filter((_, i) => (found[i]?.length ?? 0) > 0)
}
