"""The poses that a new shop begins with. Staff change them later; the demo never overwrites what they wrote."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DemoPose:
    """One pose as it is first loaded."""

    slug: str
    name: str
    description: str
    prompt: str


AS_THEY_ARE = "Keep their features, hair and clothes as they are. Steady camera, soft light."

DEMO_POSES = (
    DemoPose(
        slug="waist-heart",
        name="Waist heart",
        description="Both hands meet in front of the waist and form a big heart, with a smile that grows.",
        prompt=(
            "The person in the photo looks at the camera and smiles. They bring both hands together in front of "
            f"the waist, form a big heart with them and hold it still. {AS_THEY_ARE}"
        ),
    ),
    DemoPose(
        slug="finger-heart",
        name="Finger heart",
        description="One hand comes up beside the chin, thumb and finger cross into a small heart.",
        prompt=(
            "The person in the photo smiles at the camera, lifts one hand beside the chin and crosses thumb and index "
            f"finger into a small finger heart, then holds it. {AS_THEY_ARE}"
        ),
    ),
    DemoPose(
        slug="cheek-heart",
        name="Cheek heart",
        description="A curved hand rests against the cheek and makes half a heart with the face.",
        prompt=(
            "The person in the photo tilts the head a little and rests one curved hand against the cheek, so that hand "
            f"and face form a heart, and smiles warmly. {AS_THEY_ARE}"
        ),
    ),
    DemoPose(
        slug="overhead-heart",
        name="Overhead heart",
        description="Both arms rise, the hands meet above the head and the arms form one large heart.",
        prompt=(
            "The person in the photo raises both arms overhead until the fingertips meet above the head, so that the "
            f"arms form a large heart, and laughs. Both arms stay whole in the picture. {AS_THEY_ARE}"
        ),
    ),
)
