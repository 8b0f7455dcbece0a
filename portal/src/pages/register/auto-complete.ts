/** Purposes for autofill, by the usual names of attributes (WCAG 1.3.5). */
const purposes: Readonly<Record<string, string>> = {
  uid: 'username',
  username: 'username',
  login: 'username',
  mail: 'email',
  email: 'email',
  givenname: 'given-name',
  firstname: 'given-name',
  sn: 'family-name',
  surname: 'family-name',
  lastname: 'family-name',
  displayname: 'name',
  cn: 'name',
  name: 'name',
  telephonenumber: 'tel',
  mobile: 'tel',
  o: 'organization',
  company: 'organization',
  title: 'organization-title',
  l: 'address-level2',
  postalcode: 'postal-code',
  c: 'country',
}

export function autoComplete(attribute: string): { readonly autoComplete?: string } {
  const name = attribute.toLowerCase()
  return Object.hasOwn(purposes, name) ? { autoComplete: purposes[name] ?? 'off' } : {}
}
