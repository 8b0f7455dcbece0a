import { BerWriter } from 'ldapts'

export const passwordModifyOid = '1.3.6.1.4.1.4203.1.11.1'

/** The value of a password modify operation (RFC 3062) for somebody else. */
export function passwordModifyValue(dn: string, password: string): Buffer {
  const writer = new BerWriter()
  writer.startSequence()
  writer.writeString(dn, 0x80)
  writer.writeString(password, 0x82)
  writer.endSequence()
  return writer.buffer
}

/** What Active Directory takes for `unicodePwd`: the password in quotation marks, in UTF-16. */
export const unicodePassword = (password: string): Buffer => Buffer.from(`"${password}"`, 'utf16le')
