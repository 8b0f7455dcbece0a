import type { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { groupNamesOf } from '#identity/group-names.ts'
import { ownIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { compilePattern } from '#kernel/text/safe-pattern.ts'
import { defineSubjectFilter } from '#sdk/filter/filter.ts'
import { parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { readParameters, withParameters } from '#sdk/module/parameters.ts'
import { groupsInCluster } from '#sdk/target/cluster-groups.ts'

const name = (about: string) => parsed('distinguished name', (written) => Dn.parse(written), { about, required: true })

const added = {
  attributeName: text({ about: 'The attribute that gets the value. Values that it has stay.', required: true }),
  attributeValue: text({ about: 'The value.', required: true }),
}

/** Gives members of a group a value of an attribute. */
export const group2Attribute = defineSubjectFilter({
  className: 'filters.Group2Attribute',
  aliases: ['com.tremolosecurity.prelude.filters.Group2Attribute'],
  ...withParameters({ ...added, groupDN: name('The group, by its name in the directory.') }),
  create: ({ attributeName, attributeValue, groupDN }, { directory }) => {
    return async (subject) => {
      if (groupDN === undefined) return subject
      for (const dn of namesOf(subject)) {
        if (await directory.isMember(groupDN, dn)) return withValues(subject, attributeName, [attributeValue])
      }
      return subject
    }
  },
})

/** Gives users below a place of the directory a value of an attribute. */
export const dnBase2Attribute = defineSubjectFilter({
  className: 'filters.DNBase2Attribute',
  aliases: ['com.tremolosecurity.prelude.filters.DNBase2Attribute'],
  ...withParameters({ ...added, dn: name('The place in the directory.') }),
  create: ({ attributeName, attributeValue, dn: place }) => {
    return async (subject) => {
      const isThere = place !== undefined && namesOf(subject).some((dn) => dn.isWithin(place))
      return isThere ? withValues(subject, attributeName, [attributeValue]) : subject
    }
  },
})

const groupsParameters = {
  base: name('Where groups are searched for in the directory.'),
  attrName: text({ about: 'The attribute that gets the names. Values that it has stay.', required: true }),
  pattern: parsed('pattern', compilePattern, {
    about: 'A regular expression (RE2) that the whole name of a group must match; all groups when absent.',
  }),
  groupNum: wholeNumber({
    about: 'The group of the pattern that is the value: 0 for the whole name.',
    fallback: 0,
    max: 99,
  }),
}

/** Gives users the names of their groups in an attribute. */
export const groups2Attribute = defineSubjectFilter({
  className: 'filters.Groups2Attribute',
  aliases: ['com.tremolosecurity.prelude.filters.Groups2Attribute'],
  parameters: groupsParameters,
  parse: (params, issues, context) => {
    const given = readParameters(groupsParameters, params, issues, context)
    const groups = given.pattern?.groups ?? 0
    if (given.groupNum > groups) {
      const message = `"groupNum": the pattern has ${groups} ${groups === 1 ? 'group' : 'groups'}, not ${given.groupNum}`
      issues.error(params.pathOf('groupNum'), message)
    }
    return given
  },
  create: ({ base, attrName, pattern, groupNum }, { directory }) => {
    return async (subject) => {
      if (base === undefined) return subject
      const names: string[] = []
      for (const dn of namesOf(subject)) names.push(...(await groupNamesOf(dn, directory, base)))
      const values = pattern === undefined ? names : names.flatMap((group) => pattern.numbered(group, groupNum) ?? [])
      return withValues(subject, attrName, values)
    }
  },
})

/** Gives users those of their `groups` that count in one cluster, in the attribute `groups-k8s-<clusterName>`. */
export const clusterGroups2Attribute = defineSubjectFilter({
  className: 'filters.ClusterGroups2Attribute',
  aliases: ['com.tremolosecurity.proxy.filters.ClusterGroups2Attribute'],
  ...withParameters({
    clusterName: text({ about: 'The cluster: the name of its Target, without `k8s-`.', required: true }),
  }),
  create: ({ clusterName }, { targets }) => {
    return async (subject) => {
      const attributes = subject.attributes.clone()
      const groups = groupsInCluster(attributes.values('groups'), clusterName, targets)
      setLike(attributes, 'groups', `groups-k8s-${clusterName}`, groups)
      return { ...subject, attributes }
    }
  },
})

const anonymous = ownIdentity('anonymous')

const anonymousParameters = {
  userName: parsed('name', readName, {
    about: 'The name of callers without a login, as an attribute and its value, such as `uid=Anonymous`.',
    required: true,
  }),
}

/** Gives callers without a login another name. It logs no one in: the level of the caller stays 0. */
export const anonAz = defineSubjectFilter({
  className: 'filters.AnonAz',
  aliases: ['com.tremolosecurity.proxy.filters.AnonAz'],
  ...withParameters(anonymousParameters),
  create: ({ userName }) => {
    return async (subject) => {
      if (userName === undefined || subject.identity !== anonymous) return subject
      const { attribute, value } = userName
      const attributes = subject.attributes.clone()
      attributes.delete('uid')
      attributes.set(attribute, [value])
      return { ...subject, dn: (subject.dn.parent ?? new Dn([])).child(attribute, value), uid: value, attributes }
    }
  },
})

function readName(written: string): { readonly attribute: string; readonly value: string } {
  const [first = [], ...others] = Dn.parse(written).rdns
  const [named, ...more] = first
  if (named === undefined || others.length + more.length > 0) {
    throw new Error(`must be one attribute and its value, such as uid=Anonymous, not "${written}"`)
  }
  return { attribute: named.type, value: named.value }
}

/** Names that are made of claims aren't those of members: directories ignore their letter case. */
const namesOf = ({ dn, otherNames = [] }: Subject): readonly Dn[] =>
  [dn, ...otherNames].filter(({ isClaimed }) => !isClaimed)

/** A value is never there twice. */
function withValues(subject: Subject, attribute: string, values: readonly string[]): Subject {
  const attributes = subject.attributes.clone()
  const known = new Set(attributes.values(attribute))
  attributes.add(
    attribute,
    [...new Set(values)].filter((value) => !known.has(value)),
  )
  return { ...subject, attributes }
}

/** Values taken from a claim are a claim. */
function setLike(attributes: Attributes, from: string, to: string, values: readonly string[]): void {
  if (attributes.isClaim(from)) attributes.setClaim(to, values)
  else attributes.set(to, values)
}
