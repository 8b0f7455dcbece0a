import type { Group } from '#identity/group.ts'
import type { TargetChange } from '#sdk/target.ts'
import { change, changesOfValues } from '#sdk/value-changes.ts'

/** What bringing the group to the name and these attributes changes; those it does not tell count as they should be. */
export function changesOfGroup(
  before: Group,
  name: string,
  wanted: Iterable<readonly [string, readonly string[]]>,
): TargetChange[] {
  const { attributes, description } = before
  const renamed = before.name === name ? [] : [change('entry', 'replace', 'name', name)]
  const held = (attribute: string, values: readonly string[]): readonly string[] => {
    if (attribute.toLowerCase() === 'description' && description !== undefined) return [description]
    return attributes === undefined ? values : attributes.values(attribute)
  }
  const changed = [...wanted].flatMap(([attribute, values]) =>
    changesOfValues(attribute, held(attribute, values), values, false),
  )
  return [...renamed, ...changed]
}
