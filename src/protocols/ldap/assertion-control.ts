import { BerWriter, Control } from 'ldapts'
import { type LdapFilter, toWireFilter } from './ldap-filter.ts'

/** RFC 4528: the operation happens only while the entry matches. Critical, so a server that cannot do it refuses. */
export class AssertionControl extends Control {
  readonly #filter: LdapFilter

  constructor(filter: LdapFilter) {
    super('1.3.6.1.1.12', { critical: true })
    this.#filter = filter
  }

  protected override writeControl(writer: BerWriter): void {
    const value = new BerWriter()
    toWireFilter(this.#filter).write(value)
    writer.writeBuffer(value.buffer, 0x04)
  }
}
