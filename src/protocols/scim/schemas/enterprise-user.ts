import { attribute, type Schema } from '#protocols/scim/schema.ts'

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
