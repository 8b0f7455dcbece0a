import { attribute, labelledValues, type Schema, type SchemaAttribute } from './schema.ts'

const readOnly = { mutability: 'readOnly' } as const
const immutable = { mutability: 'immutable' } as const

/** The attributes of every resource (RFC 7643 3.1), which no schema lists. */
export const commonAttributes: readonly SchemaAttribute[] = [
  attribute('schemas', 'The schemas of the resource.', {
    type: 'reference',
    caseExact: false,
    multiValued: true,
    returned: 'always',
    ...readOnly,
  }),
  attribute('id', 'The identifier that the service gave the resource.', {
    caseExact: true,
    returned: 'always',
    uniqueness: 'server',
    ...readOnly,
  }),
  attribute('externalId', 'The identifier that the client gave the resource.', { caseExact: true }),
  attribute('meta', 'What the service knows of the resource itself.', {
    type: 'complex',
    ...readOnly,
    subAttributes: [
      attribute('resourceType', 'The type of the resource.', { caseExact: true, ...readOnly }),
      attribute('created', 'When it was created.', { type: 'dateTime', ...readOnly }),
      attribute('lastModified', 'When it was last changed.', { type: 'dateTime', ...readOnly }),
      attribute('location', 'Its address.', { type: 'reference', ...readOnly }),
      attribute('version', 'Its version.', { caseExact: true, ...readOnly }),
    ],
  }),
]

/** RFC 7643 4.1. */
export const userSchema: Schema = {
  id: 'urn:ietf:params:scim:schemas:core:2.0:User',
  name: 'User',
  description: 'A person or account',
  attributes: [
    attribute('userName', 'The login, unique without regard to letter case.', {
      required: true,
      uniqueness: 'server',
    }),
    attribute('name', "The parts of the person's name.", {
      type: 'complex',
      subAttributes: [
        attribute('formatted', 'The whole name, for display.'),
        attribute('familyName', 'The family name.'),
        attribute('givenName', 'The given name.'),
        attribute('middleName', 'The middle names.'),
        attribute('honorificPrefix', 'Titles before the name.'),
        attribute('honorificSuffix', 'Suffixes behind the name.'),
      ],
    }),
    attribute('displayName', 'The name to show.'),
    attribute('nickName', 'What people call the person.'),
    attribute('profileUrl', 'A page about the person.', { type: 'reference', referenceTypes: ['external'] }),
    attribute('title', "The person's title."),
    attribute('userType', 'The relation to the organisation, such as Employee.'),
    attribute('preferredLanguage', 'Preferred languages, as in Accept-Language.'),
    attribute('locale', 'The locale for dates and numbers.'),
    attribute('timezone', 'The time zone, as in the Olson database.'),
    attribute('active', 'Whether the account may be used.', { type: 'boolean' }),
    attribute('password', 'A new password in clear text.', {
      caseExact: true,
      mutability: 'writeOnly',
      returned: 'never',
    }),
    labelledValues('emails', 'E-mail addresses.', {}, ['work', 'home', 'other']),
    labelledValues('phoneNumbers', 'Telephone numbers.', {}, ['work', 'home', 'mobile', 'fax', 'pager', 'other']),
    labelledValues('ims', 'Instant messaging addresses.'),
    labelledValues('photos', 'Addresses of photos.', { type: 'reference', referenceTypes: ['external'] }, [
      'photo',
      'thumbnail',
    ]),
    attribute('addresses', 'Postal addresses.', {
      type: 'complex',
      multiValued: true,
      subAttributes: [
        attribute('formatted', 'The whole address, for display.'),
        attribute('streetAddress', 'Street and number.'),
        attribute('locality', 'City.'),
        attribute('region', 'State or region.'),
        attribute('postalCode', 'Postal code.'),
        attribute('country', 'Country, as two letters.'),
        attribute('type', 'What kind of address it is.', { canonicalValues: ['work', 'home', 'other'] }),
        attribute('primary', 'Whether this is the preferred address.', { type: 'boolean' }),
      ],
    }),
    attribute('groups', 'The groups the user is in; changed through the groups.', {
      type: 'complex',
      multiValued: true,
      ...readOnly,
      subAttributes: [
        attribute('value', "The group's id.", { caseExact: true, ...readOnly }),
        attribute('$ref', "The group's address.", { type: 'reference', referenceTypes: ['Group'], ...readOnly }),
        attribute('display', "The group's name.", readOnly),
        attribute('type', 'Direct or indirect membership.', { canonicalValues: ['direct', 'indirect'], ...readOnly }),
      ],
    }),
    labelledValues('entitlements', 'Things the user is entitled to.'),
    labelledValues('roles', 'Roles of the user.'),
    labelledValues('x509Certificates', 'Certificates, base64.', { type: 'binary' }),
  ],
}

/** RFC 7643 4.3. */
export const enterpriseUserSchema: Schema = {
  id: 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User',
  name: 'EnterpriseUser',
  description: 'A user of an organisation',
  attributes: [
    attribute('employeeNumber', 'The number the organisation gave the person.'),
    attribute('costCenter', 'The cost center.'),
    attribute('organization', 'The organisation.'),
    attribute('division', 'The division.'),
    attribute('department', 'The department.'),
    attribute('manager', "The person's manager.", {
      type: 'complex',
      subAttributes: [
        attribute('value', "The manager's id.", { caseExact: true }),
        attribute('$ref', "The manager's address.", { type: 'reference', referenceTypes: ['User'] }),
        attribute('displayName', "The manager's name.", { mutability: 'readOnly' }),
      ],
    }),
  ],
}

/** RFC 7643 4.2. */
export const groupSchema: Schema = {
  id: 'urn:ietf:params:scim:schemas:core:2.0:Group',
  name: 'Group',
  description: 'A group of users',
  attributes: [
    attribute('displayName', 'The name of the group.', { required: true }),
    attribute('members', 'The members of the group.', {
      type: 'complex',
      multiValued: true,
      subAttributes: [
        attribute('value', "The member's id.", { caseExact: true, ...immutable }),
        attribute('$ref', "The member's address.", {
          type: 'reference',
          referenceTypes: ['User', 'Group'],
          ...immutable,
        }),
        attribute('type', 'What the member is.', { canonicalValues: ['User', 'Group'], ...immutable }),
        attribute('display', "The member's name.", immutable),
      ],
    }),
  ],
}
