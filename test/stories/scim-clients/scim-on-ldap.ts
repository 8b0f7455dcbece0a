import { inject } from 'vitest'
import { type Slapd, startSlapd } from '#testing/ldap/slapd.ts'
import { type ScimAttribute, scimGroupAttributes, scimUserAttributes } from '#testing/scim/scim-attributes.ts'
import { directoryParameters, peopleIn, type ScimLookups } from '#testing/scim/scim-lookups.ts'

/** Attributes with a name in ordinary directories; all others get their own attribute types. */
const usualNames: Readonly<Record<string, string>> = {
  'name.familyName': 'sn',
  'name.givenName': 'givenName',
  'emails.value': 'mail',
  displayName: 'displayName',
  preferredLanguage: 'preferredLanguage',
  title: 'title',
}
const serverName = ({ name, plainName }: ScimAttribute): string => usualNames[name] ?? `scim-${plainName}`

const arc = '1.3.6.1.4.1.55555.1'
const directoryString = '1.3.6.1.4.1.1466.115.121.1.15'

/** Lists contain JSON, in which letter case counts. */
const schema = (): string[] => {
  const all = [...scimUserAttributes, ...scimGroupAttributes]
  const own = new Map(all.filter(({ name }) => !Object.hasOwn(usualNames, name)).map((one) => [serverName(one), one]))
  const types = Array.from(own, ([name, { multiValued }], i) => {
    const match = multiValued ? 'caseExact' : 'caseIgnore'
    const rules = `EQUALITY ${match}Match SUBSTR ${match}SubstringsMatch SYNTAX ${directoryString}`
    return `attributetype ( ${arc}.1.${i + 1} NAME '${name}' ${rules}${multiValued ? '' : ' SINGLE-VALUE'} )`
  })
  const aux = (n: number, name: string, attributes: readonly ScimAttribute[]) =>
    `objectclass ( ${arc}.2.${n} NAME '${name}' SUP top AUXILIARY MAY ( ${attributes.map(serverName).join(' $ ')} ) )`
  return [...types, aux(1, 'scimPerson', scimUserAttributes), aux(2, 'scimGroup', scimGroupAttributes)]
}

const start = (): Promise<Slapd> => startSlapd({ schema: schema() })

const pairs = (form: string, attributes: readonly ScimAttribute[]): Record<string, string[]> =>
  Object.fromEntries(attributes.map((one) => [`${form}.${one.name}`, [serverName(one)]]))

const people = (slapd: Slapd): Promise<string> =>
  peopleIn('targets.Ldap', {
    url: [slapd.url],
    adminDN: [slapd.adminDn],
    adminPasswd: [slapd.adminPassword],
    searchBase: [slapd.peopleDn],
    objectClass: ['account', 'scimPerson'],
    dnPattern: [`uid=\${userID},${slapd.peopleDn}`],
    'attribute.userName': ['uid'],
    ...pairs('attribute', scimUserAttributes),
    emptyTexts: ['leaveOut'],
    versionAttribute: ['entryCSN'],
    groupSearchBase: [slapd.groupsDn],
    groupObjectClass: ['groupOfNames', 'scimGroup'],
    ...pairs('groupAttribute', scimGroupAttributes),
  })

const isThere = (): boolean => inject('slapd') !== ''

/** Users in OpenLDAP, written and looked up by the target. */
export const inLdap: ScimLookups = {
  name: 'in OpenLDAP',
  keepsVersions: true,
  isThere,
  open: async () => {
    const slapd = await start()
    return {
      files: { 'people.yaml': await people(slapd) },
      close: () => slapd.stop(),
    }
  },
}

/** The same, looked up through the virtual directory, which contains the server. */
export const throughLdapDirectory: ScimLookups = {
  name: 'in OpenLDAP, through the directory',
  keepsVersions: false,
  isThere,
  open: async () => {
    const slapd = await start()
    const mapping = [...scimUserAttributes, ...scimGroupAttributes].map((one) => [one.name, serverName(one)])
    const insert = {
      apiVersion: 'openunison.tremolo.io/v1',
      kind: 'DirectoryInsert',
      metadata: { name: 'staff' },
      spec: {
        className: 'directory.Ldap',
        suffix: 'ou=staff,o=Tremolo',
        params: {
          url: slapd.url,
          adminDN: slapd.adminDn,
          adminPasswd: slapd.adminPassword,
          searchBase: slapd.baseDn,
        },
        mapping: { userName: 'uid', ...Object.fromEntries(mapping) },
      },
    }
    return {
      parameters: { ...directoryParameters, groupMemberAttributeName: 'member' },
      files: { 'people.yaml': await people(slapd), 'directory.yaml': JSON.stringify(insert) },
      close: () => slapd.stop(),
    }
  },
}
