import { attribute, type Schema } from '#protocols/scim/schema.ts'

const immutable = { mutability: 'immutable' } as const

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
