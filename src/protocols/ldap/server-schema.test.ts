import { expect, test } from 'vitest'
import { ServerSchema } from './server-schema.ts'

const schema = new ServerSchema(
  [
    "( 2.5.6.0 NAME 'top' DESC 'top of the superclass chain' ABSTRACT MUST objectClass )",
    "( 2.5.6.6 NAME 'person' DESC 'RFC2256: a person (MAY be anyone)' SUP top STRUCTURAL MUST ( sn $ cn ) MAY ( userPassword $ description ) )",
    "( 2.16.840.1.113730.3.2.2 NAME ( 'inetOrgPerson' 'person2' ) SUP person STRUCTURAL MAY ( mail $ displayName ) )",
    "( 1.3.6.1.4.1.1466.101.120.111 NAME 'extensibleObject' SUP top AUXILIARY )",
    "( 1.2.840.113556.1.5.9 NAME 'user' SUP person STRUCTURAL MAY sAMAccountName )",
    "( 1.2.840.113556.1.3.46 NAME 'mailRecipient' SUP top AUXILIARY MAY ( mail ) )",
    'not a definition at all',
  ],
  ["( 2.5.4.4 NAME ( 'sn' 'surname' ) SUP name )", "( 0.9.2342.19200300.100.1.3 NAME ( 'mail' 'rfc822Mailbox' ) )"],
  ["( 1.2.840.113556.1.5.9 NAME 'user' AUX ( mailRecipient ) MAY ( department ) )"],
)

test('a class allows its own and inherited attributes, by every name of the type', () => {
  const allowed = schema.allowed(['InetOrgPerson'])
  const wanted = 'cn description displayname mail objectclass rfc822mailbox sn surname userpassword'
  expect([...(allowed ?? [])].sort()).toEqual(wanted.split(' '))
})

test('content rules add what their classes allow', () => {
  const allowed = schema.allowed(['user'])
  expect(['mail', 'department', 'samaccountname', 'sn'].every((name) => allowed?.has(name))).toBe(true)
  expect(allowed?.has('displayname')).toBe(false)
})

test('nothing is known about a class that is unknown or allows everything', () => {
  expect(schema.allowed(['person', 'extensibleObject'])).toBeUndefined()
  expect(schema.allowed(['person', 'other'])).toBeUndefined()
})

test('a circular schema ends', () => {
  const circle = ["( 1.1 NAME 'a' SUP b MAY x )", "( 1.2 NAME 'b' SUP a MAY y )"]
  expect([...(new ServerSchema(circle, []).allowed(['a']) ?? [])].sort()).toEqual(['x', 'y'])
})

test('a class refuses attributes that it does not list, except operational ones', () => {
  const types = ["( 1.9 NAME 'nsAccountLock' USAGE directoryOperation )", "( 1.8 NAME 'title' )"]
  const known = new ServerSchema(["( 1.1 NAME 'a' MAY ( cn $ mail ) )"], types)
  const refused = ['cn', 'mail;lang-en', 'title', 'noSuchType', 'nsAccountLock'].filter((name) =>
    known.refuses(['a'], name),
  )
  expect(refused).toEqual(['title', 'noSuchType'])
  expect(known.refuses(['a', 'unknown'], 'title')).toBe(false)
})

test('attributes of one value are known by every name', () => {
  const types = [
    "( 1.2.3 NAME ( 'one' 'uno' ) SYNTAX 1.3.6 SINGLE-VALUE )",
    "( 1.2.4 NAME 'many' DESC 'not SINGLE-VALUE at all' )",
  ]
  expect([...new ServerSchema([], types).singleTypes]).toEqual(['1.2.3', 'one', 'uno'])
})
