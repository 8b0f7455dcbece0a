import { Dn, isAttributeType } from '#identity/dn.ts'
import type { Issues } from '#kernel/issues.ts'
import { parsed } from '#sdk/module/parameter-types.ts'
import type { ParsedParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'

/** Where users and groups of a store are in the directory, and their naming attributes. */
export interface AccountLayout {
  readonly people: Dn
  readonly groups: Dn
  readonly userAttribute: string
  readonly groupAttribute: string
  /** The attribute of users with the names of their groups. */
  readonly groupsAttribute?: string | undefined
}

function attributeType(value: string): string {
  if (isAttributeType(value)) return value
  throw new Error(`"${value}" is not the name of an attribute`)
}

/** The parameters of every insert that shows users and groups as entries. */
export const layoutParameters = {
  people: parsed('distinguished name', (value) => Dn.parse(value), {
    about: 'The container of users, relative to the suffix, such as `ou=people`; the suffix itself when absent.',
  }),
  groups: parsed('distinguished name', (value) => Dn.parse(value), {
    about: 'The container of groups, relative to the suffix.',
    requirement: 'no, `ou=groups`',
  }),
  userAttribute: parsed('attribute', attributeType, {
    about: 'The attribute with the login, also in DNs.',
    fallback: 'uid',
  }),
  groupAttribute: parsed('attribute', attributeType, {
    about: 'The attribute with the name of a group, also in DNs.',
    fallback: 'cn',
  }),
  groupsAttribute: parsed('attribute', attributeType, {
    about:
      'An attribute of users with the names of their groups, besides `memberOf`. Users of [targets.KubernetesUsers](../targets/targets.KubernetesUsers.md) have `groups` when absent, all others have none.',
  }),
}

/** The layout relative to a suffix. */
export function parseLayout(
  given: ParsedParameters<typeof layoutParameters>,
  params: Params,
  issues: Issues,
): (suffix: Dn) => AccountLayout {
  const { people = new Dn([]), groups = Dn.of(['ou', 'groups']), ...names } = given
  const { userAttribute, groupAttribute, groupsAttribute } = names
  if (people.equals(groups) && userAttribute.toLowerCase() === groupAttribute.toLowerCase()) {
    issues.error(params.pathOf('groups'), 'people and groups in one container need different naming attributes')
  }
  const below = (suffix: Dn, container: Dn): Dn => new Dn([...container.rdns, ...suffix.rdns])
  const taken = [userAttribute, 'memberOf', 'objectClass'].some((name) => sameName(name, groupsAttribute))
  if (taken) issues.error(params.pathOf('groupsAttribute'), 'must be an attribute of its own')
  return (suffix) => ({
    people: below(suffix, people),
    groups: below(suffix, groups),
    userAttribute,
    groupAttribute,
    groupsAttribute,
  })
}

const sameName = (one: string, other: string | undefined): boolean => one.toLowerCase() === other?.toLowerCase()
