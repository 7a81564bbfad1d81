// Holds manifests against the schemas of a version of Kubernetes: FOLDER MANIFEST…. A line for each
// fault; the end says how many objects there were.
const fs = require("fs");
const path = require("path");
const Ajv = require("ajv/dist/2020");
const yaml = require("yaml");

const [folder, ...files] = process.argv.slice(2);
const read = (name) => JSON.parse(fs.readFileSync(path.join(folder, name), "utf8"));
// Its formats, such as `int-or-string`, are words for people.
const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
ajv.addSchema(read("_definitions.json"), "_definitions.json");
let count = 0;
for (const file of files) {
  for (const document of yaml.parseAllDocuments(fs.readFileSync(file, "utf8"))) {
    for (const error of document.errors) console.log(`${file}: ${error.message}`);
    const object = document.toJS();
    const version = object.apiVersion.replace(/^([^./]*)(\.[^/]*)?\//, "$1-");
    const validate = ajv.compile(read(`${object.kind.toLowerCase()}-${version}.json`));
    if (!validate(object)) {
      for (const error of validate.errors) {
        console.log(`${file}: ${error.instancePath}: ${error.message} ${JSON.stringify(error.params)}`);
      }
    }
    count += 1;
  }
}
console.log(`${count} objects`);
