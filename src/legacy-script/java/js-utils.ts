import { matches } from '#identity/filter/evaluate.ts'
import { Attribute } from './attribute.ts'
import { fromBase64 } from './base64.ts'
import { type Bytes, bytesOf, decodeText, encodeText, signed } from './bytes.ts'
import { Group } from './group.ts'
import type { HashMap } from './hash-map.ts'
import { type BodyPublisher, BodyPublishers } from './http-request.ts'
import { IllegalArgumentException } from './java-exception.ts'
import { formatText } from './java-string.ts'
import { javaText } from './java-value.ts'
import { filterTree } from './ldap-filter.ts'
import { URLEncoder } from './uri.ts'
import { User } from './user.ts'

/** com.tremolosecurity.util.JSUtils. */
export const JSUtils = {
  string2bytes(text: unknown): Bytes {
    return signed(encodeText(javaText(text)))
  },

  bytes2string(bytes: unknown): string {
    return decodeText(bytesOf(bytes))
  },

  base64Decode(text: unknown): string {
    return decodeText(fromBase64(javaText(text)))
  },

  /** A form with each `%s` in turn replaced by a value, encoded. */
  formEncode(template: unknown, ...values: unknown[]): BodyPublisher {
    const encoded = values.map((value) => URLEncoder.encode(value))
    return BodyPublishers.ofString(formatText(javaText(template), encoded))
  },

  checkUserAgainstFilter(user: unknown, memberOf: unknown, filter: unknown): boolean {
    if (!(user instanceof User)) throw new IllegalArgumentException('a User is needed')
    const entry = entryOf(user.getAttribs())
    entry.set('objectclass', ['inetOrgPerson'])
    entry.set(javaText(memberOf).toLowerCase(), user.getGroups().toArray().map(javaText))
    return check(entry, filter)
  },

  checkGroupAgainstFilter(group: unknown, filter: unknown): boolean {
    if (!(group instanceof Group)) throw new IllegalArgumentException('a Group is needed')
    const entry = entryOf(group.getAttributes())
    entry.set('cn', [group.getName() ?? ''])
    entry.set('objectclass', ['groupOfUniqueNames'])
    entry.set('uniquemember', group.getMembers().toArray().map(javaText))
    return check(entry, filter)
  },
}

function entryOf(attribs: HashMap): Map<string, readonly string[]> {
  const entry = new Map<string, readonly string[]>()
  for (const [name, attribute] of attribs) {
    if (attribute instanceof Attribute)
      entry.set(javaText(name).toLowerCase(), attribute.getValues().toArray().map(javaText))
  }
  return entry
}

const check = (entry: ReadonlyMap<string, readonly string[]>, filter: unknown): boolean =>
  matches(filterTree(javaText(filter)), { values: (name) => entry.get(name.toLowerCase()) ?? [] })
